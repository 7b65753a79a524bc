-- Orders wait in lines, one for each account and priority. A line's place among the others follows from how long its first order
-- has waited, when the line was last served, and how many runs of its account somebody works on. Priorities are 0 (low), 1 and
-- 2 (high); `queued` is when a run began to wait, `claimed` when somebody last took it from its line.

ALTER TABLE runs ADD COLUMN priority BIGINT NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN queued BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claimed BIGINT;

UPDATE runs SET queued = created;

DROP INDEX runs_queued;
CREATE INDEX runs_waiting ON runs (installation, account, priority, queued, run)
  WHERE state = 'queued' AND lease_owner IS NULL;
CREATE INDEX runs_held ON runs (installation, account) WHERE ended IS NULL AND lease_owner IS NOT NULL;
CREATE INDEX runs_served ON runs (installation, account, priority, claimed) WHERE claimed IS NOT NULL;
CREATE INDEX runs_claimed ON runs (installation, claimed) WHERE claimed IS NOT NULL;
