-- A store serves one host for each installation: its containers, workspaces and sockets are where no other host reaches them.
-- A store without a row here serves the host that uses it next. `lease_until` is when the host was last heard of, and a while.

CREATE TABLE hosts (
  installation TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  name TEXT NOT NULL,
  since BIGINT NOT NULL,
  seen BIGINT NOT NULL,
  lease_until BIGINT NOT NULL
);

-- Containers that wait for a run are all of that host, whatever it was called when they were made.

DROP INDEX pool_ready;
ALTER TABLE pool DROP COLUMN host;
CREATE INDEX pool_ready ON pool (installation, mould) WHERE state = 'ready';
