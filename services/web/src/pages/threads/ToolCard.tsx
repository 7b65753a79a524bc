/** Shows one call of a tool: its name, arguments, state, and the size and time of its result. Text only. */
import { formatBytes, formatDuration } from "../../base/text/format";
import { visibleText } from "../../base/text/marks";
import { AgentText, cutAt } from "../../components/AgentText";
import { StateChip, type Tone } from "../../components/StateChip";
import type { CallState, ToolCall } from "./parts";

const TONES: Record<CallState, Tone> = {
  running: "busy", waiting: "warn", approved: "busy", executing: "busy", done: "good", failed: "bad", denied: "bad", unknown: "warn",
};
const NAME_CHARS = 60;
const OPEN: CallState[] = ["running", "waiting", "approved", "executing"];
const WORDS: Partial<Record<CallState, string>> = { waiting: "waits for approval", unknown: "outcome unknown" };

/** Renders the call. In an answer that has ended, a call without a result has none any more. */
export function ToolCard({ call, phase }: { call: ToolCall; phase: "open" | "ended" }) {
  const isCut = phase === "ended" && OPEN.includes(call.state);
  return (
    <section className={`tool-card tool-${call.origin}`} aria-label={`Tool ${visibleText(cutAt(call.name, NAME_CHARS))}`}>
      <div className="tool-head">
        <span className="tool-kind">{call.origin === "host" ? "host tool" : "tool"}</span>
        <code>
          <AgentText text={call.name} form="inline" />
        </code>
        {isCut ? <StateChip state="no result" tone="idle" /> : (
          <StateChip state={WORDS[call.state] ?? call.state} tone={TONES[call.state]} code={call.code ?? undefined} />
        )}
        <span className="tool-facts">
          {call.resultBytes !== null && <span>{formatBytes(call.resultBytes)}</span>}
          {call.durationMs !== null && <span>{formatDuration(call.durationMs)}</span>}
        </span>
      </div>
      {call.argumentsText !== "" && <Text label="Arguments" text={call.argumentsText} />}
      {call.resultText !== null && call.resultText !== "" && <Text label="Result" text={call.resultText} />}
    </section>
  );
}

function Text({ label, text }: { label: string; text: string }) {
  return (
    <details>
      <summary>{label}</summary>
      <div className="tool-text" tabIndex={0} role="group" aria-label={label}>
        <AgentText text={text} />
      </div>
    </details>
  );
}
