-- Calls of host tools. The row of a call that writes is stored before it acts; that of one which needs an approval, before
-- a person decides. `args` are the arguments for that person, without secrets.

CREATE TABLE tool_calls (
  run TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  id TEXT NOT NULL,
  call TEXT NOT NULL,
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  tool TEXT NOT NULL,
  effect TEXT NOT NULL,
  args_digest TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  code TEXT,
  message TEXT,
  result TEXT,
  result_bytes BIGINT,
  connection TEXT,
  began BIGINT NOT NULL,
  ended BIGINT,
  args TEXT,
  decide_by BIGINT,
  decided BIGINT,
  decided_by TEXT,
  PRIMARY KEY (run, attempt, id)
);
CREATE INDEX tool_calls_waiting ON tool_calls (installation, began) WHERE state = 'waiting';
