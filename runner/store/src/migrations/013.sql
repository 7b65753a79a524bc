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
  PRIMARY KEY (source_system, source_reference)
);

CREATE INDEX receipts_account ON receipts (installation, account, called, source_reference);
CREATE INDEX receipts_run ON receipts (run);
