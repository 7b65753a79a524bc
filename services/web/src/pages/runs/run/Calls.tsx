/** Model calls of a run, as the journal records them. */
import { formatCount, formatDollars, formatDuration } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { More } from "../../../components/More";
import { EmptyState } from "../../../components/Notes";
import { StateChip, type Tone } from "../../../components/StateChip";
import { type Column, Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import { type Call, useCalls } from "./calls";
import type { RunDetails } from "./useRun";

const none = <span className="none">–</span>;
const inline = (text: string) => (text === "" ? none : <AgentText text={text} form="inline" />);

const COLUMNS: Column<Call>[] = [
  { id: "at", label: "At", cell: (call) => <Time at={call.at} /> },
  { id: "outcome", label: "Outcome", isWide: true, cell: (call) => <OutcomeChip call={call} /> },
  { id: "model", label: "Model", isWide: true, cell: (call) => <Model call={call} /> },
  { id: "status", label: "Status", isNumeric: true, cell: (call) => call.status },
  { id: "input", label: "In", isNumeric: true, cell: (call) => formatCount(call.tokens.input) },
  { id: "cached", label: "Cached", isNumeric: true, cell: (call) => formatCount(call.tokens.cached) },
  { id: "output", label: "Out", isNumeric: true, cell: (call) => formatCount(call.tokens.output) },
  { id: "cost", label: "Cost", isNumeric: true, cell: (call) => (call.cost === null ? none : formatDollars(call.cost)) },
  {
    id: "first", label: "First byte", isNumeric: true,
    cell: (call) => (call.firstByteMs === null ? none : formatDuration(call.firstByteMs)),
  },
  { id: "took", label: "Took", isNumeric: true, cell: (call) => formatDuration(call.durationMs) },
  { id: "end", label: "Stopped by", cell: (call) => inline(call.finishReason ?? "") },
  { id: "tools", label: "Tools", cell: (call) => inline(call.tools.join(", ")) },
];

/** Renders the calls of `run`. */
export function Calls({ run }: { run: RunDetails }) {
  const calls = useCalls(run);
  const { items } = calls;
  return (
    <>
      {items !== null && items.length === 0 && (
        <EmptyState title="No model calls">The agent has called no model, or its calls are not in the journal yet.</EmptyState>
      )}
      {items !== null && items.length > 0 && <Table label="Model calls" columns={COLUMNS} rows={items} keyOf={(call) => call.callId} />}
      <More pages={calls} />
    </>
  );
}

const TONES = new Map<string, Tone>([["complete", "good"], ["client_gone", "warn"], ["interrupted", "warn"], ["run_closed", "warn"]]);

/** Outcome of a call, with the code of its refusal. */
export function OutcomeChip({ call }: { call: Call }) {
  const tone = call.outcome === "complete" && call.status >= 400 ? "bad" : (TONES.get(call.outcome) ?? "bad");
  const code = call.refusal ?? call.timeout ?? undefined;
  const count = call.calls > 1 ? ` ×${formatCount(call.calls)}` : "";
  return <StateChip state={`${call.outcome}${count}`} tone={tone} code={code} />;
}

function Model({ call }: { call: Call }) {
  if (call.modelAsked === null) return <code>{inline(call.route)}</code>;
  return (
    <>
      <AgentText text={call.modelAsked} form="inline" />
      {call.modelAnswered !== null && call.modelAnswered !== call.modelAsked && (
        <>
          {" → "}
          <AgentText text={call.modelAnswered} form="inline" />
        </>
      )}
    </>
  );
}
