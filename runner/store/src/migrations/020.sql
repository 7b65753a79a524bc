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
