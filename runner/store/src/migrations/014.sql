-- Credits, in which accounts pay. A receipt keeps the rate by which its credits were computed. Receipts of earlier schemas cost no
-- credits. A balance is the sum of an account's top-ups less the credits of its receipts, and moves in their transactions.

ALTER TABLE receipts ADD COLUMN corrects TEXT;
ALTER TABLE receipts ADD COLUMN credits BIGINT NOT NULL DEFAULT 0;
ALTER TABLE receipts ADD COLUMN markup TEXT NOT NULL DEFAULT '0';
ALTER TABLE receipts ADD COLUMN credits_per_dollar BIGINT NOT NULL DEFAULT 1;

CREATE INDEX receipts_corrects ON receipts (corrects) WHERE corrects IS NOT NULL;
CREATE INDEX receipts_booked ON receipts (installation, account, created);

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
