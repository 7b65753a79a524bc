/** Turns the parts of an answer into what is shown. Addresses that are not of the web are never links. */
import { webAddress } from "../../base/text/links";
import { type ChatMessage, field, numberField, textField } from "./message";

/** State of a tool's call in words. */
export type CallState = "running" | "waiting" | "approved" | "executing" | "done" | "failed" | "denied" | "unknown";

/** Call of a tool. That of a host tool is recorded by the host; others are in the agent's own words. */
export interface ToolCall {
  id: string;
  name: string;
  origin: "host" | "agent";
  state: CallState;
  argumentsText: string;
  /** Text of the result, if the agent reports one. */
  resultText: string | null;
  resultBytes: number | null;
  durationMs: number | null;
  code: string | null;
}

/** Part of an answer that is shown. */
export type PartView =
  | { kind: "text"; text: string }
  | { kind: "tool"; call: ToolCall }
  | { kind: "link"; title: string; href: string; host: string }
  | { kind: "leftOut"; what: string };

type Part = ChatMessage["parts"][number];

/** Begin of the ids of host tools' calls. No other part has it. */
const HOST_PREFIX = "host-";
const HOST_STATES = new Set<string>(["waiting", "approved", "executing", "done", "failed", "denied", "unknown"]);

/** Returns what is shown of a message, in order. */
export function viewParts(message: ChatMessage): PartView[] {
  return message.parts.flatMap((part) => view(part, message));
}

function view(part: Part, message: ChatMessage): PartView[] {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text === "" ? [] : [{ kind: "text", text: part.text }];
    case "source-url":
      return [linkOr(part.url, part.title ?? part.url, "a source")];
    case "file":
    case "reasoning-file":
      return [linkOr(part.url, textField(part, "filename") ?? part.mediaType, "a file")];
    case "source-document":
      return [{ kind: "text", text: part.title }];
    default:
      return "toolCallId" in part && typeof part.toolCallId === "string" ? [{ kind: "tool", call: callOf(part, message) }] : [];
  }
}

function linkOr(address: string, title: string, what: string): PartView {
  const url = webAddress(address);
  if (url === null) return { kind: "leftOut", what: `${what} whose address is not one of the web` };
  return { kind: "link", title, href: url.href, host: url.host };
}

function callOf(part: Part, message: ChatMessage): ToolCall {
  const id = textField(part, "toolCallId") ?? "";
  const output = field(part, "output");
  const base = {
    id,
    name: textField(part, "toolName") ?? part.type.replace(/^tool-/, ""),
    argumentsText: argumentsOf(field(part, "input")),
    code: textField(output, "error") ?? textField(part, "errorText"),
  };
  if (id.startsWith(HOST_PREFIX) && isOfHost(output)) return { ...base, ...hostResult(id, output, message) };
  const state = textField(part, "state") ?? "";
  const hasOutput = state.startsWith("output-");
  const text = hasOutput ? resultOf(output) : null;
  return {
    ...base,
    origin: "agent",
    state: !hasOutput ? "running" : base.code === null ? "done" : "failed",
    resultText: base.code ?? text,
    resultBytes: text === null || base.code !== null ? null : new TextEncoder().encode(text).length,
    durationMs: null,
    code: null,
  };
}

/** Returns whether `output` is one of a host tool's call: it has its state, and never a text. */
function isOfHost(output: unknown): boolean {
  return output === undefined || HOST_STATES.has(textField(output, "state") ?? "");
}

function hostResult(id: string, output: unknown, message: ChatMessage) {
  const data = message.parts.findLast((part) => part.type === "data-host-tool" && textField(field(part, "data"), "toolCallId") === id);
  const word = textField(output, "state") ?? textField(field(data, "data"), "state") ?? "executing";
  return {
    origin: "host" as const,
    state: HOST_STATES.has(word) ? (word as CallState) : ("unknown" as const),
    resultText: null,
    resultBytes: numberField(output, "resultBytes"),
    durationMs: numberField(output, "durationMs"),
  };
}

function argumentsOf(input: unknown): string {
  if (input === undefined || input === null) return "";
  if (typeof input === "object" && Object.keys(input).length === 0) return "";
  return typeof input === "string" ? input : (JSON.stringify(input, null, 2) ?? "");
}

function resultOf(output: unknown): string {
  return typeof output === "string" ? output : (JSON.stringify(output, null, 2) ?? "");
}
