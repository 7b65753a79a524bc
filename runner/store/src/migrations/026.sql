-- Sums of ended runs by five minutes, hour and day, account, outcome and reason, with how long they waited. The overview reads
-- them instead of all runs. They change in the transaction that ends a run or starts it again. Those of days stay.

CREATE TABLE run_sums (
  installation TEXT NOT NULL,
  span BIGINT NOT NULL,
  began BIGINT NOT NULL,
  account TEXT NOT NULL,
  state TEXT NOT NULL,
  error_code TEXT NOT NULL,
  runs BIGINT NOT NULL,
  waits_below_one_second BIGINT NOT NULL,
  waits_below_five_seconds BIGINT NOT NULL,
  waits_below_thirty_seconds BIGINT NOT NULL,
  waits_below_two_minutes BIGINT NOT NULL,
  waits_below_ten_minutes BIGINT NOT NULL,
  waits_longer BIGINT NOT NULL,
  longest_wait BIGINT NOT NULL,
  PRIMARY KEY (installation, span, began, account, state, error_code)
);

-- Number of calls whose price was not known, so that a sum of zero dollars is not read as no cost.
ALTER TABLE usage_sums ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0;
