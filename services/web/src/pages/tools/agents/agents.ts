/** Filters and orders agents. Pure. */
import type { Schemas } from "../../../api/client";

type Agent = Schemas["AgentStatus"];

/** Filter of the list. */
export interface AgentFilter {
  state: "all" | "ready" | "blocked";
  text: string;
}

/** Returns the agents of the filter: the blocked ones first, then by id. */
export function filterAgents(agents: Agent[], { state, text }: AgentFilter): Agent[] {
  const wanted = text.trim().toLowerCase();
  const matches = (agent: Agent) => `${agent.agentId}\n${agent.name}`.toLowerCase().includes(wanted);
  const found = agents.filter((agent) => (state === "all" || agent.canRun === (state === "ready")) && matches(agent));
  return found.sort((a, b) => Number(a.canRun) - Number(b.canRun) || a.agentId.localeCompare(b.agentId));
}
