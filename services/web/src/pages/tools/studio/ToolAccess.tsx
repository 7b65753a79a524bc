/** Explains what an agent may do: for each tool the verdict, the layer that decides, and the setting that changes it. */
import { api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { FixText } from "../../../components/FixText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import type { GatewayAgent } from "./agents";
import { type ReadTool, countTools, readTools } from "./explanation";

/** Loads and renders the explanation. A new revision of the agent asks anew. */
export default function ToolAccess({ agent: { gateway, id, revision, state } }: { agent: GatewayAgent }) {
  const loaded = useLoad(`explain ${gateway} ${id} ${revision} ${state}`, (signal) =>
    api.get("/api/v1/gateways/{gateway}/agents/{agent}/explain", { path: { gateway, agent: id }, signal }),
  );
  const { data, error } = loaded;
  if (error?.status === 404) {
    return <EmptyState title="Nothing to explain yet">The configuration of the gateway does not have the agent.</EmptyState>;
  }
  if (data === null) return <LoadNote loaded={loaded} rows={10} />;
  const tools = readTools(data.tools);
  return (
    <>
      <LoadNote loaded={loaded} />
      {data.source === "file" && (
        <p className="note">The gateway does not answer. This is what its configuration file says, which it may not have read yet.</p>
      )}
      <dl className="facts">
        <Fact name="Sandbox of OpenClaw">
          <StateChip state={data.isSandboxed ? "on" : "off"} tone={data.isSandboxed ? "good" : "idle"} />
        </Fact>
        <Fact name="Sessions">{data.sandbox}</Fact>
        <Fact name="Directory">{data.workspace}</Fact>
        <Fact name="Tools">{countTools(tools)}</Fact>
      </dl>
      <Table label="Tools" columns={COLUMNS} rows={tools} keyOf={(row) => row.tool} />
    </>
  );
}

const COLUMNS: Column<ReadTool>[] = [
  { id: "tool", label: "Tool", cell: (row) => <code><AgentText text={row.tool} form="inline" /></code> },
  { id: "verdict", label: "Verdict", cell: (row) => <StateChip state={row.verdict} tone={row.tone} /> },
  { id: "layer", label: "Decided by", cell: (row) => <AgentText text={row.layer} form="inline" /> },
  { id: "why", label: "Why", isWide: "labelled", cell: (row) => <FixText text={row.reason} /> },
  { id: "setting", label: "Setting", isWide: "labelled", cell: (row) => <Setting name={row.setting} /> },
];

function Setting({ name }: { name: string | null }) {
  return name === null ? <span className="none">–</span> : <code><AgentText text={name} form="inline" /></code>;
}
