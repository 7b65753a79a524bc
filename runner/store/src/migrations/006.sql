-- Of a run that ended long ago only its last words are kept. Number of the last event that is not; absent if nobody has looked yet.

ALTER TABLE runs ADD COLUMN pruned BIGINT;

CREATE INDEX runs_told ON runs (installation, ended, run) WHERE ended IS NOT NULL AND pruned IS NULL;
