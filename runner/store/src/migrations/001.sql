-- The first schema. The same text for SQLite and Postgres, so only types that both spell alike. Times are milliseconds
-- since the epoch, by the database's clock.

CREATE TABLE runs (
  run TEXT PRIMARY KEY,
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  agent TEXT NOT NULL,
  correlation TEXT NOT NULL,
  wanted TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  lease_owner TEXT,
  lease_until BIGINT,
  created BIGINT NOT NULL,
  started BIGINT,
  ended BIGINT,
  changed BIGINT NOT NULL,
  exit_code BIGINT,
  error_code TEXT,
  error_message TEXT,
  answer TEXT,
  answer_bytes BIGINT,
  usage TEXT,
  last_event BIGINT NOT NULL
);

CREATE INDEX runs_newest ON runs (installation, created, run);
CREATE INDEX runs_queued ON runs (installation, created, run) WHERE state = 'queued';
CREATE INDEX runs_leased ON runs (installation, lease_until) WHERE ended IS NULL;

CREATE TABLE events (
  run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL,
  PRIMARY KEY (run, seq)
);

CREATE TABLE resources (
  run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (run, kind, name)
);

CREATE INDEX resources_left ON resources (run) WHERE state <> 'removed';

CREATE TABLE cursors (
  consumer TEXT NOT NULL,
  journal TEXT NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (consumer, journal)
);
