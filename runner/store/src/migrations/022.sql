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
