-- Somebody has asked for the run to stop.

ALTER TABLE runs ADD COLUMN cancel_asked BIGINT;
