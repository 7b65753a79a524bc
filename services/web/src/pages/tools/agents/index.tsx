/** Agents of the configuration: which run here, which do not, and why. */
import { type Schemas, api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { useShortcuts } from "../../../base/keys";
import { Link, useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { AgentText } from "../../../components/AgentText";
import { FixText } from "../../../components/FixText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import "./agents.css";

type Agent = Schemas["AgentStatus"];

/** Shows the agents, those that are blocked first. */
export default function Agents() {
  const { query, setQuery } = useLocation();
  const { may } = useSession();
  const loaded = useLoad("agents", (signal) => api.get("/api/v1/agents", { signal }));
  const { data } = loaded;
  const state = query.get("state");
  const filter: AgentFilter = { state: state === "ready" || state === "blocked" ? state : "all", text: query.get("q") ?? "" };
  const agents = filterAgents(data?.agents ?? [], filter);
  const isFiltered = filter.state !== "all" || filter.text !== "";
  useShortcuts([{ key: "/", label: "Go to the filter", run: () => document.getElementById("agents-filter")?.focus() }]);
  return (
    <>
      <div className="page-head">
        <h1>Agents</h1>
        {may("operator") && <Link to="/agents/draft">Draft a new agent</Link>}
        {may("operator") && <Link to="/agents/skill">Draft a skill</Link>}
        <Link to="/agents/proposals">Proposals</Link>
        <div className="bar-line">
          <input
            id="agents-filter" type="search" aria-label="Filter by id or name" placeholder="Filter by id or name" value={filter.text}
            onChange={(event) => setQuery({ q: event.target.value })}
          />
          <select
            aria-label="State" value={filter.state === "all" ? "" : filter.state}
            onChange={(event) => setQuery({ state: event.target.value })}
          >
            <option value="">all</option>
            <option value="ready">can run</option>
            <option value="blocked">cannot run</option>
          </select>
          <button type="button" onClick={loaded.reload}>Check again</button>
        </div>
      </div>
      {!may("operator") && <p className="hint">Drafting an agent takes the role operator.</p>}
      <LoadNote loaded={loaded} />
      {data !== null && agents.length === 0 && (
        <NoAgents onClear={isFiltered ? () => setQuery({ q: null, state: null }) : null} />
      )}
      {agents.length > 0 && (
        <Table label="Agents" columns={columns(data?.defaultAgentId ?? null)} rows={agents} keyOf={(agent) => agent.agentId} />
      )}
    </>
  );
}

function columns(defaultId: string | null): Column<Agent>[] {
  return [
    { id: "agent", label: "Agent", isWide: true, cell: (agent) => <Name agent={agent} isDefault={agent.agentId === defaultId} /> },
    { id: "state", label: "Here", cell: (agent) => <Here canRun={agent.canRun} /> },
    { id: "order", label: "You may order", cell: (agent) => (agent.mayOrder ? "yes" : <span className="muted">no</span>) },
    { id: "tools", label: "Tools", isWide: "labelled", cell: (agent) => <Tools tools={agent.tools} /> },
    { id: "why", label: "Why not, and what to do", isWide: "labelled", cell: (agent) => <Reasons agent={agent} /> },
  ];
}

function Name({ agent, isDefault }: { agent: Agent; isDefault: boolean }) {
  return (
    <div className="agent-name">
      <strong><AgentText text={agent.name} form="inline" /></strong>
      <code><AgentText text={agent.agentId} form="inline" /></code>
      {isDefault && <span className="muted">the default</span>}
      <span className="muted agent-description"><AgentText text={agent.description} form="inline" /></span>
    </div>
  );
}

function NoAgents({ onClear }: { onClear: (() => void) | null }) {
  if (onClear !== null) return <EmptyState title="No agent is like this" onClear={onClear} />;
  return (
    <EmptyState title="There are no agents">
      Add one with <code>sluice agents add</code>, or as <code>[agents."family:name"]</code> in the configuration.
    </EmptyState>
  );
}

function Here({ canRun }: { canRun: boolean }) {
  return <StateChip state={canRun ? "can run" : "cannot run"} tone={canRun ? "good" : "bad"} />;
}

function Tools({ tools }: { tools: string[] | undefined }) {
  if (tools === undefined) return <span className="none">any</span>;
  if (tools.length === 0) return <span className="none">none</span>;
  return (
    <ul className="agent-tools">
      {tools.map((tool) => <li key={tool}><AgentText text={tool} form="inline" /></li>)}
    </ul>
  );
}

function Reasons({ agent }: { agent: Agent }) {
  if (agent.reasons.length === 0) return <span className="none">–</span>;
  return (
    <ul className="reasons">
      {agent.reasons.map((reason) => (
        <li key={`${reason.code} ${reason.message}`}>
          <FixText text={reason.message} /> <code className="muted"><AgentText text={reason.code} form="inline" /></code>
        </li>
      ))}
    </ul>
  );
}

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
