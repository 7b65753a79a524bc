-- Browser sessions: a person signed in with a token, and a browser acts with a cookie instead. A session lasts no longer than the token
-- with this key id. Of the cookie only its hash is kept.

CREATE TABLE browser_sessions (
  installation TEXT NOT NULL,
  session_hash TEXT NOT NULL,
  key_id TEXT NOT NULL,
  created BIGINT NOT NULL,
  used BIGINT NOT NULL,
  PRIMARY KEY (installation, session_hash)
);

CREATE INDEX browser_sessions_key ON browser_sessions (installation, key_id, created);
