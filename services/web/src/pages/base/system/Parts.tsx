/** Shows the parts of the system: store, Docker, data plane, and the journal with its readers. */
import type { ReactNode } from "react";
import { formatCount } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { StateChip } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import { type DataPlane, type Journal, type System, formatUptime, toneOf } from "./state";

/** Renders the parts beside each other. */
export function Parts({ system }: { system: System }) {
  const { store, docker, dataPlane } = system;
  return (
    <div className="system-parts">
      <Part name="Store" state={store.state} reason={store.reason} place={store.description}>
        <Fact name="Schema">{String(store.schema)}</Fact>
      </Part>
      <Part name="Docker" state={docker.state} reason={docker.reason}>
        <Fact name="Engine">{docker.engine}</Fact>
        <Fact name="API">{docker.api}</Fact>
      </Part>
      <DataPlanePart plane={dataPlane} />
      <JournalPart journal={system.journal} />
    </div>
  );
}

interface PartProps {
  name: string;
  state: string;
  reason: string | null;
  place?: string | null;
  children: ReactNode;
}

function Part({ name, state, reason, place, children }: PartProps) {
  return (
    <section className="panel stack" aria-label={name}>
      <div className="bar-line">
        <h2>{name}</h2>
        <StateChip state={state} tone={toneOf(state)} />
      </div>
      {reason !== null && <p><AgentText text={reason} form="inline" /></p>}
      {typeof place === "string" && <code><AgentText text={place} form="inline" /></code>}
      <dl className="facts">{children}</dl>
    </section>
  );
}

function DataPlanePart({ plane }: { plane: DataPlane }) {
  const count = (value: number | null) => (value === null ? null : formatCount(value));
  return (
    <Part name="Data plane" state={plane.state} reason={plane.reason ?? (plane.reasons.length > 0 ? plane.reasons.join(", ") : null)}>
      <Fact name="Upstream">{plane.upstream}</Fact>
      <Fact name="Open runs">{count(plane.openRuns)}</Fact>
      <Fact name="Calls in flight">{count(plane.callsInFlight)}</Fact>
      <Fact name="Up for">{plane.uptimeSeconds === null ? null : formatUptime(plane.uptimeSeconds)}</Fact>
      <Fact name="Version">{plane.version}</Fact>
    </Part>
  );
}

const CONSUMERS: Column<Journal["consumers"][number]>[] = [
  { id: "name", label: "Consumer", cell: ({ name }) => <AgentText text={name} form="inline" /> },
  { id: "acknowledged", label: "Acknowledged", isNumeric: true, cell: ({ acknowledged }) => formatCount(acknowledged) },
  { id: "lag", label: "Behind", isNumeric: true, cell: ({ lag }) => formatCount(lag) },
];

function JournalPart({ journal }: { journal: Journal | null }) {
  if (journal === null) return <Part name="Journal" state="not known" reason="The data plane does not answer.">{null}</Part>;
  return (
    <section className="panel stack" aria-label="Journal">
      <div className="bar-line">
        <h2>Journal</h2>
        <StateChip state={journal.state} tone={toneOf(journal.state)} />
      </div>
      <dl className="facts">
        <Fact name="Last record">{formatCount(journal.lastSeq)}</Fact>
        <Fact name="Id">{journal.id}</Fact>
      </dl>
      {journal.consumers.length === 0 ? (
        <p className="muted">It has no consumers.</p>
      ) : (
        <Table label="Consumers of the journal" columns={CONSUMERS} rows={journal.consumers} keyOf={({ name }) => name} />
      )}
    </section>
  );
}
