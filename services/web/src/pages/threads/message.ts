/**
 * Reads what the server says of an answer: its run, its state, and what the agent does now. Texts of the agent are not read
 * here, so that none can look like a state.
 */
import type { UIMessage } from "ai";

/** Message of a thread, from the store or from the stream. */
export type ChatMessage = UIMessage<unknown, Record<string, unknown>>;

/** State of an answer. */
export type AnswerState =
  | { kind: "open"; phase: string; ahead: number | null; waiting: number | null }
  | { kind: "succeeded" }
  | { kind: "cancelled" }
  | { kind: "failed"; state: string; code: string; message: string };

/** Answer, as the server describes it. */
export interface Answer {
  runId: string | null;
  agentId: string | null;
  at: string | null;
  state: AnswerState;
  activity: { kind: string; label: string | null } | null;
  totalTokens: number | null;
}

/** Code of a stream that ended while its run goes on. */
export const INTERRUPTED = "interrupted";

const ENDED = new Set(["failed", "timed_out"]);

/** Reads an answer. */
export function readAnswer(message: ChatMessage): Answer {
  const { metadata } = message;
  const activity = dataOf(message, "activity");
  const kind = textField(activity, "kind");
  return {
    runId: textField(metadata, "runId"),
    agentId: textField(metadata, "agentId"),
    at: textField(metadata, "createdAt"),
    state: stateOf(message),
    activity: kind === null ? null : { kind, label: textField(activity, "label") },
    totalTokens: numberField(field(metadata, "usage"), "totalTokens"),
  };
}

/** Returns whether the server has said how the answer ended. */
export function hasEnded(message: ChatMessage | undefined): boolean {
  return message !== undefined && message.role === "assistant" && stateOf(message).kind !== "open";
}

function stateOf(message: ChatMessage): AnswerState {
  const { metadata } = message;
  const stored = textField(metadata, "state");
  if (field(metadata, "done") === true || stored === "succeeded") return { kind: "succeeded" };
  if (stored === "cancelled") return { kind: "cancelled" };
  if (stored !== null && ENDED.has(stored)) return failure(stored, field(metadata, "error"));
  const error = dataOf(message, "error");
  const code = textField(error, "code");
  if (code !== null && code !== INTERRUPTED) return failure("failed", error);
  const status = dataOf(message, "status");
  const phase = textField(status, "phase") ?? stored ?? "queued";
  if (phase === "cancelled") return { kind: "cancelled" };
  return { kind: "open", phase, ahead: numberField(status, "ahead"), waiting: numberField(status, "waiting") };
}

function failure(state: string, error: unknown): AnswerState {
  const code = textField(error, "code") ?? state;
  return { kind: "failed", state, code, message: textField(error, "message") ?? "The run has failed." };
}

/** Returns the data of the last part `data-NAME`. The server alone writes these. */
function dataOf(message: ChatMessage, name: string): unknown {
  return field(message.parts.findLast((part) => part.type === `data-${name}`), "data");
}

/** Returns the text of a message: all its text parts. */
export function textOf(message: ChatMessage): string {
  return message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

/** Returns the messages of an answer of the API. What has not the form of a message is left out. */
export function readMessages(values: readonly unknown[]): ChatMessage[] {
  return values.flatMap((value) => {
    const id = textField(value, "id");
    const role = textField(value, "role");
    const parts = field(value, "parts");
    if (id === null || !Array.isArray(parts) || (role !== "user" && role !== "assistant")) return [];
    const kept = parts.filter((part: unknown) => textField(part, "type") !== null) as ChatMessage["parts"];
    return [{ id, role, parts: kept, metadata: field(value, "metadata") }];
  });
}

/** Puts the last messages of a thread, read anew, in place of those that are shown from the first of them on. */
export function mergeTail(shown: ChatMessage[], tail: ChatMessage[]): ChatMessage[] {
  const at = shown.findIndex((message) => message.id === tail[0]?.id);
  return at < 0 ? tail : [...shown.slice(0, at), ...tail];
}

/** Returns the field `name` of `value`, or undefined if `value` is not an object or lacks it. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}

/** Returns the field if it is a text, else null. */
export function textField(value: unknown, name: string): string | null {
  const found = field(value, name);
  return typeof found === "string" ? found : null;
}

/** Returns the field if it is a number, else null. */
export function numberField(value: unknown, name: string): number | null {
  const found = field(value, name);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}
