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
