-- Agents in gateways that people made. `revision` rises with each change; a gateway has the one in `applied`. `step` is the one
-- that is being taken, or that failed for the reason in `problem`. A row with `removed` stays until its gateway has lost the agent.

CREATE TABLE gateway_agents (
  installation TEXT NOT NULL,
  gateway TEXT NOT NULL,
  agent TEXT NOT NULL,
  account TEXT,
  workspace TEXT NOT NULL,
  settings TEXT NOT NULL,
  revision BIGINT NOT NULL,
  applied BIGINT NOT NULL,
  step TEXT,
  problem TEXT,
  removed BIGINT,
  created BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, gateway, agent)
);
CREATE INDEX gateway_agents_pending ON gateway_agents (installation, gateway) WHERE applied < revision;

-- Behaviour files of such agents, each with the agent's revision that wrote it: a gateway gets it once.
CREATE TABLE gateway_agent_files (
  installation TEXT NOT NULL,
  gateway TEXT NOT NULL,
  agent TEXT NOT NULL,
  name TEXT NOT NULL,
  content TEXT NOT NULL,
  revision BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, gateway, agent, name)
);

-- Agent of a gateway that asks whether its command may run, as `GATEWAY/AGENT`; null for calls of host tools.
ALTER TABLE tool_calls ADD COLUMN gateway TEXT;
