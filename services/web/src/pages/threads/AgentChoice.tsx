/** Chooses among the agents that can run. */
import { visibleText } from "../../base/text/marks";
import { ErrorNote } from "../../components/Notes";
import type { Agents } from "./useAgents";

/** Properties: the agents, and the one that is chosen. */
export interface AgentChoiceProps {
  agents: Agents;
  agent: string | null;
  onAgent: (agent: string) => void;
}

/** Renders the choice. */
export function AgentChoice({ agents, agent, onAgent }: AgentChoiceProps) {
  const { list, error, refresh, reload } = agents;
  if (list === null && error !== null) return <ErrorNote error={error} onRetry={reload} />;
  if (list === null) return <span className="hint">Reading the agents …</span>;
  if (list.agents.length === 0) return <span className="hint">No agent can run here. The page Agents says why.</span>;
  const chosen = list.agents.find((one) => one.agentId === agent);
  return (
    <label className="agent-choice">
      <span className="visually-hidden">Agent</span>
      <select
        value={agent ?? ""} onFocus={refresh} onChange={(event) => onAgent(event.target.value)}
        title={chosen === undefined ? undefined : visibleText(chosen.description)}
      >
        {list.agents.map((one) => (
          <option key={one.agentId} value={one.agentId}>
            {visibleText(`${one.name} (${one.agentId})`)}
          </option>
        ))}
      </select>
    </label>
  );
}
