/** Tool calls of a run: those that ran on the host, or those that the agent reports of itself. */
import { useMemo } from "react";
import { useLoad } from "../../api/useLoad";
import { AgentText } from "../../components/agent-text/AgentText";
import { Elapsed } from "../../components/Elapsed";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { formatBytes } from "../../components/format";
import { Skeleton } from "../../components/Skeleton";
import { StateChip } from "../../components/StateChip";
import { Time } from "../../components/Time";
import type { EventLog } from "./eventLog";
import { type RunTool, readTools, reportedTools } from "./tools";
import type { RunDetails } from "./useRun";

const FIRST_CHARS = 4_000;

/** Renders the tool calls of `run`. */
export function Tools({ run, log, version }: { run: RunDetails; log: EventLog; version: number }) {
  const key = `${run.runId} ${run.attempt} ${run.state} ${run.waitingToolCalls?.join() ?? ""}`;
  const loaded = useLoad(key, (signal) => readTools(run.runId, undefined, signal));
  const reported = useMemo(() => reportedTools(log.toolEvents), [log, version]);
  if (loaded.error !== null && loaded.data === null) return <ErrorNote error={loaded.error} onRetry={loaded.reload} />;
  if (loaded.isLoading && loaded.data === null) return <Skeleton rows={5} />;
  const host = loaded.data?.tools ?? [];
  if (host.length === 0 && reported.length === 0) {
    return <EmptyState title="No tool calls">The run has used no host tool, and its agent reports none.</EmptyState>;
  }
  return (
    <>
      {host.length > 0 && <ToolList title="On the host" note="As the tool gateway recorded them, without secrets." tools={host} />}
      {reported.length > 0 && (
        <ToolList title="Reported by the agent" note="In the agent's own words, which prove nothing." tools={reported} />
      )}
    </>
  );
}

function ToolList({ title, note, tools }: { title: string; note: string; tools: RunTool[] }) {
  return (
    <section className="stack">
      <div className="bar-line">
        <h2>{title}</h2>
        <span className="muted">{note}</span>
      </div>
      {tools.map((tool) => (
        <ToolView key={tool.id} tool={tool} />
      ))}
    </section>
  );
}

function ToolView({ tool }: { tool: RunTool }) {
  const tone = tool.isFailure ? "bad" : /wait/.test(tool.state) ? "warn" : tool.endedAt === null ? "busy" : "good";
  return (
    <details className="panel tool-call">
      <summary>
        <StateChip state={tool.state} tone={tone} /> <AgentText text={tool.name} form="inline" />{" "}
        <span className="muted">
          <Time at={tool.startedAt} /> {tool.endedAt !== null && <Elapsed from={tool.startedAt} to={tool.endedAt} />}
        </span>
      </summary>
      <p className="part">Arguments{tool.sizes.arguments !== null && ` (${formatBytes(tool.sizes.arguments)})`}</p>
      <Kept text={pretty(tool.arguments)} cutBytes={tool.cutBytes} />
      <p className="part">Result{tool.sizes.result !== null && ` (${formatBytes(tool.sizes.result)})`}</p>
      <Kept text={tool.result} cutBytes={0} />
    </details>
  );
}

function Kept({ text, cutBytes }: { text: string; cutBytes: number }) {
  if (text === "") return <p className="muted">Not kept, or not there yet.</p>;
  return <AgentText text={text} firstChars={FIRST_CHARS} cutBytes={cutBytes} />;
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
