-- Runs of one session are worked on one after the other: the name of the session, where a run has one that others may have, too.

ALTER TABLE runs ADD COLUMN session TEXT;

CREATE INDEX runs_in_session ON runs (installation, session)
  WHERE session IS NOT NULL AND ended IS NULL AND lease_owner IS NOT NULL;
