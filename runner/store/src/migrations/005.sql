-- Containers that wait for a run, and what goes with them. A run that takes one has them as its own things, and the row here goes;
-- one that nobody took stays in its row until it is certainly gone, and a while longer, so that what comes late is known.

CREATE TABLE pool (
  name TEXT PRIMARY KEY,
  installation TEXT NOT NULL,
  mould TEXT NOT NULL,
  agent TEXT NOT NULL,
  workspace TEXT NOT NULL,
  listener TEXT NOT NULL,
  owner TEXT NOT NULL,
  host TEXT NOT NULL,
  state TEXT NOT NULL,
  lease_until BIGINT NOT NULL,
  changed BIGINT NOT NULL
);

CREATE INDEX pool_ready ON pool (installation, host, mould) WHERE state = 'ready';
