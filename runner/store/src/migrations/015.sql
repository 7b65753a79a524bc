-- Rows of the upstream's ledger, as they were compared with receipts, and the position up to which the ledger was read.

CREATE INDEX receipts_call ON receipts (call_id);
CREATE INDEX receipts_called ON receipts (installation, called);

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
