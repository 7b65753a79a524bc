-- Names of today: a warm container is made from a template, and a run keeps how far its events are recorded.

ALTER TABLE pool RENAME COLUMN mould TO template;
ALTER TABLE runs RENAME COLUMN told TO events_recorded;
