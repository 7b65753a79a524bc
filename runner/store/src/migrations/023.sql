-- The first schema. The same text for SQLite and Postgres, so only types that both spell alike. Times are milliseconds
-- since the epoch, by the database's clock.

-- Orders wait in lines, one for each account and priority. A line's place among the others follows from how long its first
-- order has waited, when the line was last served, and how many runs of its account are being worked on. Priorities are 0
-- (low), 1 and 2 (high); `queued` is when a run began to wait, `claimed` when a worker last took it from its line.
-- `events_recorded` is how far its events are stored, `stopping` why its agent is about to be ended, `pruned` the number of
-- the last event that was removed, and `forgotten` when its texts were. Runs of one `session` follow one another.
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
  last_event BIGINT NOT NULL,
  cancel_asked BIGINT,
  events_recorded TEXT,
  stopping TEXT,
  image TEXT,
  oom_seen BIGINT,
  error_detail TEXT,
  priority BIGINT NOT NULL DEFAULT 1,
  queued BIGINT NOT NULL DEFAULT 0,
  claimed BIGINT,
  pruned BIGINT,
  session TEXT,
  forgotten BIGINT,
  model TEXT
);

CREATE INDEX runs_newest ON runs (installation, created, run);
CREATE INDEX runs_leased ON runs (installation, lease_until) WHERE ended IS NULL;
CREATE INDEX runs_waiting ON runs (installation, account, priority, queued, run)
  WHERE state = 'queued' AND lease_owner IS NULL;
CREATE INDEX runs_held ON runs (installation, account) WHERE ended IS NULL AND lease_owner IS NOT NULL;
CREATE INDEX runs_served ON runs (installation, account, priority, claimed) WHERE claimed IS NOT NULL;
CREATE INDEX runs_claimed ON runs (installation, claimed) WHERE claimed IS NOT NULL;
CREATE INDEX runs_told ON runs (installation, ended, run) WHERE ended IS NOT NULL AND pruned IS NULL;
CREATE INDEX runs_in_session ON runs (installation, session)
  WHERE session IS NOT NULL AND ended IS NULL AND lease_owner IS NOT NULL;
CREATE INDEX runs_remembered ON runs (installation, ended) WHERE ended IS NOT NULL AND forgotten IS NULL;

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

-- Warm containers, each made from a template, with what goes with them. A run that takes one has them as its own resources, and
-- the row here goes. One that no run took stays in its row until it is certainly gone, and a while longer, so that what comes
-- late is known.
CREATE TABLE pool (
  name TEXT PRIMARY KEY,
  installation TEXT NOT NULL,
  template TEXT NOT NULL,
  agent TEXT NOT NULL,
  workspace TEXT NOT NULL,
  listener TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  lease_until BIGINT NOT NULL,
  changed BIGINT NOT NULL
);

CREATE INDEX pool_ready ON pool (installation, template) WHERE state = 'ready';

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

-- Principals: the people and programs that may use the HTTP API, each for one account. A revoked one keeps its row, so that its id
-- never names another. `agents` is a JSON list, or null for all; `limits` is a JSON object. Of a token only its hash is kept.
-- `repositories` is a list of addresses and beginnings of addresses; null for all that the account may use.
CREATE TABLE principals (
  installation TEXT NOT NULL,
  principal TEXT NOT NULL,
  account TEXT NOT NULL,
  role TEXT NOT NULL,
  agents TEXT,
  limits TEXT NOT NULL,
  key_id TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  created BIGINT NOT NULL,
  rotated BIGINT,
  used BIGINT,
  revoked BIGINT,
  repositories TEXT,
  PRIMARY KEY (installation, principal)
);

CREATE UNIQUE INDEX principals_key ON principals (installation, key_id);

-- Threads: conversations of an account, which any agent may continue. Each run of a thread is one turn of it. `parent` is the turn that
-- it continues, so a question may be asked anew beside its first answer.
CREATE TABLE turns (
  run TEXT PRIMARY KEY REFERENCES runs (run) ON DELETE CASCADE,
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  thread TEXT NOT NULL,
  number BIGINT NOT NULL,
  parent TEXT,
  question TEXT NOT NULL,
  question_id TEXT,
  created BIGINT NOT NULL
);

CREATE UNIQUE INDEX turns_threads ON turns (installation, account, thread, number);

-- Browser sessions: a person signed in with a token, and a browser acts with a cookie instead. A session lasts no longer than the token
-- with this key id. Of the cookie only its hash is kept.
CREATE TABLE browser_sessions (
  installation TEXT NOT NULL,
  session_hash TEXT NOT NULL,
  key_id TEXT NOT NULL,
  created BIGINT NOT NULL,
  used BIGINT NOT NULL,
  PRIMARY KEY (installation, session_hash)
);

CREATE INDEX browser_sessions_key ON browser_sessions (installation, key_id, created);

-- Calls, as the journal records them, and what each costs. A call and its receipt are stored in the transaction that
-- moves the cursor of their journal. Calls go with the journal's retention; receipts stay.
CREATE TABLE calls (
  journal TEXT NOT NULL,
  seq BIGINT NOT NULL,
  run TEXT NOT NULL,
  at BIGINT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (journal, seq)
);

CREATE INDEX calls_run ON calls (run, journal, seq);
CREATE INDEX calls_age ON calls (at);

CREATE TABLE receipts (
  source_system TEXT NOT NULL,
  source_reference TEXT NOT NULL,
  installation TEXT NOT NULL,
  receipt_kind TEXT NOT NULL,
  account TEXT NOT NULL,
  user_id TEXT,
  run TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  call_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  executor_type TEXT NOT NULL,
  model TEXT,
  tokens TEXT NOT NULL,
  tokens_source TEXT NOT NULL,
  nanodollars BIGINT NOT NULL,
  charge_reason TEXT NOT NULL,
  called BIGINT NOT NULL,
  created BIGINT NOT NULL,
  corrects TEXT,
  credits BIGINT NOT NULL DEFAULT 0,
  markup TEXT NOT NULL DEFAULT '0',
  credits_per_dollar BIGINT NOT NULL DEFAULT 1,
  PRIMARY KEY (source_system, source_reference)
);

CREATE INDEX receipts_account ON receipts (installation, account, called, source_reference);
CREATE INDEX receipts_run ON receipts (run);
CREATE INDEX receipts_corrects ON receipts (corrects) WHERE corrects IS NOT NULL;
CREATE INDEX receipts_booked ON receipts (installation, account, created);
CREATE INDEX receipts_call ON receipts (call_id);
CREATE INDEX receipts_called ON receipts (installation, called);

-- Credits, in which accounts pay. A receipt keeps the rate by which its credits were computed. A balance is the sum of an
-- account's top-ups less the credits of its receipts, and moves in their transactions.
CREATE TABLE top_ups (
  installation TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  account TEXT NOT NULL,
  credits BIGINT NOT NULL,
  note TEXT,
  author TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (installation, idempotency_key)
);

CREATE INDEX top_ups_account ON top_ups (installation, account, created, idempotency_key);

CREATE TABLE balances (
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  credits BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, account)
);

-- Rows of the upstream's ledger, as they were compared with receipts, and the position up to which the ledger was read.
CREATE TABLE ledger_rows (
  installation TEXT NOT NULL,
  request_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  began BIGINT NOT NULL,
  nanodollars BIGINT,
  finding TEXT NOT NULL,
  late BIGINT NOT NULL,
  account TEXT,
  model TEXT,
  read BIGINT NOT NULL,
  PRIMARY KEY (installation, request_id, call_id)
);

CREATE INDEX ledger_rows_call ON ledger_rows (call_id);
CREATE INDEX ledger_rows_began ON ledger_rows (installation, began);

CREATE TABLE reconciliations (
  installation TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  lease_until BIGINT NOT NULL,
  covered_from BIGINT,
  covered_until BIGINT,
  completed BIGINT,
  pass_from BIGINT,
  pass_position BIGINT,
  pass_began BIGINT
);

-- Relays: the way of each attempt's commits from its workspace to a branch of their repository.
CREATE TABLE relays (
  run TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  url TEXT NOT NULL,
  branch TEXT NOT NULL,
  stage TEXT NOT NULL,
  document TEXT NOT NULL,
  due BIGINT,
  version BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (run, attempt)
);

CREATE INDEX relays_branch ON relays (installation, url, branch);
CREATE INDEX relays_due ON relays (installation, due);

-- Workspaces of threads: the one that the runs of a thread and an agent share, and the run that has it now or had it last.
CREATE TABLE thread_workspaces (
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  thread TEXT NOT NULL,
  agent TEXT NOT NULL,
  workspace TEXT NOT NULL,
  run TEXT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, account, thread, agent)
);

CREATE INDEX thread_workspaces_workspace ON thread_workspaces (workspace);

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

-- Connections: credentials of accounts at providers. `sealed` is encrypted with the key `sealing_key`, bound to installation,
-- account, connection, provider, scope and kind. `version` rises with it. Who holds `refresh_owner` refreshes, until `refresh_until`.
CREATE TABLE connections (
  installation TEXT NOT NULL,
  connection TEXT NOT NULL,
  account TEXT NOT NULL,
  provider TEXT NOT NULL,
  scope TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  sealing_key TEXT NOT NULL,
  sealed TEXT NOT NULL,
  version BIGINT NOT NULL,
  expires BIGINT,
  created BIGINT NOT NULL,
  refreshed BIGINT,
  used BIGINT,
  refresh_owner TEXT,
  refresh_until BIGINT,
  PRIMARY KEY (installation, connection)
);
CREATE UNIQUE INDEX connections_by_scope ON connections (installation, account, provider, scope);

-- Tools of third-party servers that an operator has accepted: the definition as it was shown, and its digest. One that the server
-- changes is refused until it is accepted again.
CREATE TABLE accepted_tools (
  installation TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  digest TEXT NOT NULL,
  definition TEXT NOT NULL,
  accepted BIGINT NOT NULL,
  accepted_by TEXT NOT NULL,
  PRIMARY KEY (installation, server, tool)
);

-- Links with which a browser signs in once: the hash of a code, and the token that it acts for. And what browsers have
-- reported that the policy of the dashboard's pages blocked: one row for each rule, source and blocked address.
CREATE TABLE sign_in_links (
  installation TEXT NOT NULL,
  code_hash TEXT NOT NULL,
  key_id TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (installation, code_hash)
);

CREATE TABLE csp_reports (
  installation TEXT NOT NULL,
  directive TEXT NOT NULL,
  blocked TEXT NOT NULL,
  source TEXT NOT NULL,
  page TEXT NOT NULL,
  reports BIGINT NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  PRIMARY KEY (installation, directive, blocked, source)
);
