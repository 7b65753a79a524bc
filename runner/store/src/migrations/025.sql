-- Beginning of the question that a run was ordered with, so that lists need not read whole orders. Older runs have none here.

ALTER TABLE runs ADD COLUMN question_start TEXT;
