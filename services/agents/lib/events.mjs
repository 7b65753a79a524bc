// Builds the events of a run: one JSON object a line, and the result or the error as the last. Performs no I/O.
import { createHash } from "node:crypto";

import { AgentError, truncate } from "./errors.mjs";

// Longest argument or result of a tool call in an event, in characters. The model has the whole.
const MAX_TOOL_CHARS = 64 << 10;
// Longest answer, in characters: a line has at most 1 MiB, and JSON writes some characters with six bytes.
const MAX_ANSWER_CHARS = 128 << 10;

// Longest id or name of a tool call, in bytes. LiteLLM makes ids of more than a KiB for some models.
const MAX_WORD_BYTES = 128;

// Returns the line of an event. Agents cut texts anywhere: halves of characters are replaced.
export const toLine = (event) => JSON.stringify(event, (_key, value) => (typeof value === "string" ? value.toWellFormed() : value));

export const text = (piece) => ({ type: "text", text: truncate(String(piece), MAX_ANSWER_CHARS) });

// Builds the event of a tool call. Arguments are an object, or its JSON as text.
export const toolCall = (id, name, args) => ({
  type: "tool_call",
  id: toWord(id),
  name: toWord(name),
  arguments: toObject(args),
});

export const toolResult = (id, result, isError = false) => ({
  type: "tool_result",
  id: toWord(id),
  result: shorten(typeof result === "string" ? result : JSON.stringify(result ?? "")),
  is_error: Boolean(isError),
});

export const usage = (input, output, cached) => ({
  type: "usage",
  input_tokens: count(input),
  output_tokens: count(output),
  cached_tokens: count(cached),
});

export const result = (answer) => ({ type: "result", text: truncate(answer, MAX_ANSWER_CHARS) });

export function error(cause) {
  const known = cause instanceof AgentError ? cause : new AgentError("agent_error", cause.message);
  return { type: "error", code: known.code, message: known.message };
}

// Returns arguments as an object. Text that is not an object, and an object that is too long, becomes its field `text`.
function toObject(args) {
  const json = typeof args === "string" ? args : JSON.stringify(args ?? {});
  if (json.length > MAX_TOOL_CHARS) return { text: shorten(json) };
  try {
    const value = JSON.parse(json);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // free text, such as a patch
  }
  return { text: json };
}

// Returns an id or a name that is neither empty nor long. The same id gives the same word.
function toWord(value) {
  const word = String(value ?? "") || "unnamed";
  if (Buffer.byteLength(word) <= MAX_WORD_BYTES) return word;
  return `${truncate(word, 16)}${createHash("sha256").update(word).digest("hex")}`;
}

const shorten = (value) => truncate(value, MAX_TOOL_CHARS);

function count(value) {
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}
