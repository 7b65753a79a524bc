/** Takes a question. Enter sends, Shift+Enter begins a line, Esc stops; the focus stays in the field. */
import { type FormEvent, type KeyboardEvent, type RefObject, useRef } from "react";
import { AgentChoice } from "./AgentChoice";
import type { Agents } from "./useAgents";

/** Longest question, in characters. */
export const MAX_QUESTION = 16_000;

/** Properties. `mode` says whether a question can be sent, waits for one that was refused, or an answer can be stopped. */
export interface ComposerProps {
  text: string;
  mode: "ready" | "blocked" | "busy" | "stoppable";
  agents: Agents;
  agent: string | null;
  field: RefObject<HTMLTextAreaElement | null>;
  onText: (text: string) => void;
  onAgent: (agent: string) => void;
  onSend: (text: string) => void;
  onStop: () => void;
}

/** Returns why `text` cannot be sent, or null if it can. An empty one needs no explanation. */
export function objection(text: string): string | null {
  const over = [...text].length - MAX_QUESTION;
  if (over > 0) return `${over.toLocaleString("en")} characters too many`;
  return text.trim() === "" ? "" : null;
}

/** Renders the field with its buttons. */
export function Composer({ text, mode, agents, agent, field, onText, onAgent, onSend, onStop }: ComposerProps) {
  const form = useRef<HTMLFormElement>(null);
  const why = objection(text);
  const canSend = mode === "ready" && why === null && agent !== null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canSend) onSend(text);
    field.current?.focus();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape" && mode === "stoppable") {
      event.preventDefault();
      onStop();
    }
    // Enter also ends a word of an input method.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    form.current?.requestSubmit();
  };
  return (
    <form className="composer" ref={form} onSubmit={submit}>
      <label className="visually-hidden" htmlFor="question">
        Question
      </label>
      <textarea
        id="question" ref={field} rows={2} value={text} onChange={(event) => onText(event.target.value)} onKeyDown={press}
        placeholder="Ask an agent" aria-describedby="question-keys"
      />
      <div className="composer-foot">
        <AgentChoice agents={agents} agent={agent} onAgent={onAgent} />
        <span id="question-keys" className="hint composer-keys">
          {why !== null && why !== "" ? why : "Enter sends · Shift+Enter begins a line · Esc stops"}
        </span>
        {mode === "ready" || mode === "blocked" ? (
          <button type="submit" className="primary" disabled={!canSend}>
            Send
          </button>
        ) : (
          <button type="button" className="danger" disabled={mode === "busy"} onClick={onStop}>
            Stop
          </button>
        )}
      </div>
    </form>
  );
}
