-- Sums of receipts by five minutes, hour and day, account and model, and numbers of refused calls by reason. The overview reads
-- them instead of all receipts. They change in the transaction that stores the receipt or the call. Those of days stay.

CREATE TABLE usage_sums (
  installation TEXT NOT NULL,
  span BIGINT NOT NULL,
  began BIGINT NOT NULL,
  account TEXT NOT NULL,
  model TEXT NOT NULL,
  calls BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  nanodollars BIGINT NOT NULL,
  credits BIGINT NOT NULL,
  PRIMARY KEY (installation, span, began, account, model)
);

CREATE TABLE refusal_sums (
  installation TEXT NOT NULL,
  span BIGINT NOT NULL,
  began BIGINT NOT NULL,
  account TEXT NOT NULL,
  refusal TEXT NOT NULL,
  calls BIGINT NOT NULL,
  PRIMARY KEY (installation, span, began, account, refusal)
);

CREATE INDEX runs_ended ON runs (installation, ended, account, state, error_code, queued, claimed) WHERE ended IS NOT NULL;
