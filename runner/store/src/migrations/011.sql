-- Threads: conversations of an account, which any agent may continue. Each run of a thread is one turn of it. `parent` is the turn that
-- it continues, so a question may be asked anew beside its first answer. `forgotten` is when the texts of a run were removed.

CREATE TABLE turns (
  run TEXT PRIMARY KEY REFERENCES runs (run) ON DELETE CASCADE,
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  thread TEXT NOT NULL,
  number BIGINT NOT NULL,
  parent TEXT,
  question TEXT NOT NULL,
  question_id TEXT,
  created BIGINT NOT NULL
);

CREATE UNIQUE INDEX turns_threads ON turns (installation, account, thread, number);

ALTER TABLE runs ADD COLUMN forgotten BIGINT;
CREATE INDEX runs_remembered ON runs (installation, ended) WHERE ended IS NOT NULL AND forgotten IS NULL;
