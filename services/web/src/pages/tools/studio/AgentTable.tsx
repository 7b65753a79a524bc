/** Table of a gateway's agents: what each may do, and how far its gateway has it. */
import { Link } from "../../../base/router";
import { AgentText } from "../../../components/AgentText";
import { Avatar } from "../../../components/Avatar";
import { FixText } from "../../../components/FixText";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import { CAPABILITIES, type GatewayAgent, pagePath, readState } from "./agents";

/** Properties: the agents, and what opens the page of one. */
export interface AgentTableProps {
  label: string;
  agents: GatewayAgent[];
  onOpen: (agent: GatewayAgent) => void;
}

/** Renders the table, with the reasons of the gateway's policy below it. */
export function AgentTable({ label, agents, onOpen }: AgentTableProps) {
  const reasons = policyReasons(agents);
  return (
    <>
      <Table label={label} columns={columns(reasons)} rows={agents} keyOf={(agent) => agent.id} onOpen={onOpen} />
      {reasons.length > 0 && (
        <ol className="studio-reasons hint" aria-label="Why less applies than is wanted">
          {reasons.map((reason) => <li key={reason}><FixText text={reason} /></li>)}
        </ol>
      )}
    </>
  );
}

/** Returns the reasons why less applies than is wanted, each once: the footnotes of the table. */
export function policyReasons(agents: Pick<GatewayAgent, "effective">[]): string[] {
  const found = agents.flatMap(({ effective }) => CAPABILITIES.map(([id]) => effective[id].reason));
  return [...new Set(found.filter((reason) => reason !== null))];
}

function columns(reasons: string[]): Column<GatewayAgent>[] {
  return [
    { id: "agent", label: "Agent", isWide: true, cell: (agent) => <Name agent={agent} /> },
    ...CAPABILITIES.map(([id, label]): Column<GatewayAgent> => ({
      id, label, cell: (agent) => <Value effect={agent.effective[id]} reasons={reasons} />,
    })),
    { id: "state", label: "State", isWide: "labelled", cell: (agent) => <AgentState agent={agent} /> },
  ];
}

function Name({ agent }: { agent: GatewayAgent }) {
  return (
    <div className="studio-name">
      <Avatar seed={agent.avatar ?? agent.name} />
      <div>
        <Link to={pagePath(agent.gateway, agent.id)}><AgentText text={agent.name} form="inline" /></Link>{" "}
        <code className="muted"><AgentText text={agent.id} form="inline" /></code>
        {agent.source === "configuration" && <div className="muted">described by the configuration file</div>}
      </div>
    </div>
  );
}

function Value({ effect: { value, reason }, reasons }: { effect: GatewayAgent["effective"]["web"]; reasons: string[] }) {
  const at = reason === null ? 0 : reasons.indexOf(reason) + 1;
  return (
    <>
      <AgentText text={value} form="inline" />
      {at > 0 && <sup><span className="visually-hidden">, reason </span>{at}</sup>}
    </>
  );
}

/** Shows how far the gateway has the agent, and why a step failed. */
export function AgentState({ agent }: { agent: GatewayAgent }) {
  const { text, tone } = readState(agent);
  return (
    <>
      <StateChip state={text} tone={tone} />
      {agent.problem !== null && <div className="studio-problem"><FixText text={agent.problem} /></div>}
    </>
  );
}
