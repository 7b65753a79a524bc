/** Tool calls of a run: those that ran on the host, and those that the agent reports of itself. */
import { useMemo } from "react";
import { formatBytes } from "../../../base/text/format";
import { spreadJson } from "../../../base/text/json";
import { AgentText } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { More } from "../../../components/More";
import { StateChip } from "../../../components/StateChip";
import { Elapsed, Time } from "../../../components/Time";
import { Nothing, type Source } from "./Nothing";
import { type RunTool, reportedTools, useTools } from "./tools";
import type { RunDetails } from "./useRun";

const FIRST_CHARS = 4_000;

/** Renders the tool calls of `run`. */
export function Tools({ run, source }: { run: RunDetails; source: Source }) {
  const { log, version } = source;
  const host = useTools(run);
  const reported = useMemo(() => reportedTools(log.toolEvents), [log, version]);
  const { items } = host;
  return (
    <>
      {items !== null && items.length === 0 && reported.length === 0 && (
        <Nothing source={source} title="No tool calls">The run has used no host tool, and its agent reports none.</Nothing>
      )}
      {items !== null && items.length > 0 && (
        <ToolList title="On the host" note="As the tool gateway recorded them, without secrets." tools={items} />
      )}
      <More pages={host} />
      {reported.length > 0 && (
        <ToolList title="Reported by the agent" note="In the agent’s own words, which prove nothing." tools={reported} />
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

function toneOf(tool: RunTool) {
  if (tool.isFailure) return "bad";
  if (tool.state === "waiting") return "warn";
  return tool.endedAt === null ? "busy" : "good";
}

function ToolView({ tool }: { tool: RunTool }) {
  return (
    <details className="panel tool-call">
      <summary>
        <StateChip state={tool.state} tone={toneOf(tool)} /> <AgentText text={tool.name} form="inline" />{" "}
        <span className="muted">
          <Time at={tool.startedAt} /> {tool.endedAt !== null && <Elapsed from={tool.startedAt} to={tool.endedAt} />}
        </span>
      </summary>
      {tool.facts.length > 0 && (
        <dl className="facts">
          {tool.facts.map(([name, value]) => (
            <Fact key={name} name={name}>{value}</Fact>
          ))}
        </dl>
      )}
      <p className="part">Arguments</p>
      <Kept text={tool.arguments === null ? null : spreadJson(tool.arguments)} cutBytes={tool.cutBytes} />
      <p className="part">Result</p>
      {tool.resultBytes === null ? (
        <Kept text={tool.result} cutBytes={tool.resultCutBytes} />
      ) : (
        <p>{formatBytes(tool.resultBytes)}, not kept</p>
      )}
    </details>
  );
}

function Kept({ text, cutBytes }: { text: string | null; cutBytes: number }) {
  if (text === null) return <p className="muted">Not kept, or not there yet.</p>;
  return <AgentText text={text} firstChars={FIRST_CHARS} cutBytes={cutBytes} />;
}
