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
