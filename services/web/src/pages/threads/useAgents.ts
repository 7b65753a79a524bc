/** Reads which agents can run, and keeps the answer for five minutes. An agent that cannot run is not in it. */
import { type Schemas, api } from "../../api/client";
import type { ApiError } from "../../api/problem";
import { useLoad } from "../../api/useLoad";

const LIFETIME_MS = 5 * 60_000;
let kept: { list: Schemas["AgentList"]; until: number } | null = null;

/** Agents that can run; null until they are known. */
export interface Agents {
  list: Schemas["AgentList"] | null;
  error: ApiError | null;
  /** Reads them anew if what is kept is older than five minutes. */
  refresh: () => void;
  /** Reads them anew. */
  reload: () => void;
}

/** Returns the agents. */
export function useAgents(): Agents {
  const { data, error, reload } = useLoad("agents", async (signal) => {
    if (kept !== null && Date.now() < kept.until) return kept.list;
    const list = await api.get("/api/v1/ai/agents", { signal });
    kept = { list, until: Date.now() + LIFETIME_MS };
    return list;
  });
  const refresh = () => {
    if (kept === null || Date.now() >= kept.until) reload();
  };
  return { list: data, error, refresh, reload };
}

/** Chooses the agent: `wanted` if it can run, else the default, else the first. */
export function chooseAgent(list: Schemas["AgentList"] | null, wanted: (string | null)[]): string | null {
  if (list === null) return wanted.find((id) => id !== null) ?? null;
  const found = [...wanted, list.defaultAgentId].find((id) => list.agents.some((agent) => agent.agentId === id));
  return found ?? list.agents[0]?.agentId ?? null;
}
