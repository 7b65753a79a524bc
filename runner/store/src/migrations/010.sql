-- Principals: the people and programs that may use the HTTP API, each for one account. A revoked one keeps its row, so that its id
-- never names another. `agents` is a JSON list, or null for all; `limits` is a JSON object. Of a token only its hash is kept.

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
  PRIMARY KEY (installation, principal)
);

CREATE UNIQUE INDEX principals_key ON principals (installation, key_id);
