-- Events are what followers are told, word for word. How far that has come is kept with the run, and so are why its agent was
-- about to be ended, whether memory was short, what a failure was in an operator's words, and the image its containers are made from.

ALTER TABLE runs ADD COLUMN told TEXT;
ALTER TABLE runs ADD COLUMN stopping TEXT;
ALTER TABLE runs ADD COLUMN image TEXT;
ALTER TABLE runs ADD COLUMN oom_seen BIGINT;
ALTER TABLE runs ADD COLUMN error_detail TEXT;

UPDATE runs SET stopping = (
  SELECT payload FROM events WHERE events.run = runs.run AND kind = 'stopping'
  AND seq > (SELECT max(moves.seq) FROM events AS moves WHERE moves.run = events.run AND moves.kind = 'moved')
  ORDER BY seq DESC LIMIT 1
) WHERE state = 'running';

DELETE FROM events WHERE kind <> 'moved';

UPDATE events SET kind = 'status', payload = '{"type":"status","phase":"queued"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"queued"%';
UPDATE events SET kind = 'status', payload = '{"type":"status","phase":"preparing"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"preparing"%';
UPDATE events SET kind = 'status', payload = '{"type":"status","phase":"starting"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"starting"%';
UPDATE events SET kind = 'status', payload = '{"type":"status","phase":"running"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"running"%';
UPDATE events SET kind = 'status', payload = '{"type":"status","phase":"settling"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"settling"%';
UPDATE events SET kind = 'done', payload = '{"type":"done"}'
WHERE kind = 'moved' AND payload LIKE '%"to":"succeeded"%';
UPDATE events SET kind = 'error', payload = '{"type":"error","code":"'
  || COALESCE((SELECT error_code FROM runs WHERE runs.run = events.run), 'internal')
  || '","message":"it ended before events told more"}'
WHERE kind = 'moved';
