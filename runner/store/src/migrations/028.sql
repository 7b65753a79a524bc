-- Agent of a gateway that a run is a turn of, as `GATEWAY/AGENT`; null for runs in containers, and before a session is chosen.
ALTER TABLE runs ADD COLUMN gateway_agent TEXT;
CREATE INDEX runs_of_gateway_agent ON runs (installation, gateway_agent, created) WHERE gateway_agent IS NOT NULL;
CREATE INDEX resources_sessions ON resources (name) WHERE kind = 'session';
