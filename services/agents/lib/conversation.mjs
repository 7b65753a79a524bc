// Builds the one prompt that an agent accepts: the conversation so far, then the message to answer. Performs no I/O.
import { AgentError } from "./errors.mjs";

const MAX_PROMPT_BYTES = 4 << 20;

const inputError = (why) => new AgentError("input_error", `messages.json: ${why}`);

// Builds a prompt of at most `maxBytes` from the JSON list of `{role, content}` in `text`.
export function buildPrompt(text, maxBytes = MAX_PROMPT_BYTES) {
  const messages = parseMessages(text);
  const last = messages.pop();
  if (last.role !== "user") throw inputError(`the last message has role ${last.role}, not user`);
  if (last.content.trim() === "") throw inputError("the last message is empty");
  if (Buffer.byteLength(last.content) > maxBytes) throw inputError(`the last message is larger than ${maxBytes} bytes`);
  const instructions = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const sections = messages.filter(({ role }) => role !== "system").map(formatSection);
  // The oldest messages are left out first, the instructions last.
  for (let first = 0; first <= sections.length; first += 1) {
    const prompt = formatPrompt(instructions, sections.slice(first), last.content);
    if (Buffer.byteLength(prompt) <= maxBytes) return prompt;
  }
  return last.content;
}

function parseMessages(text) {
  let messages;
  try {
    messages = JSON.parse(text);
  } catch (error) {
    throw inputError(`not JSON: ${error.message}`);
  }
  if (!Array.isArray(messages) || messages.length === 0) throw inputError("not a list of messages, or an empty one");
  const bad = messages.findIndex((one) => typeof one?.role !== "string" || typeof one?.content !== "string");
  if (bad >= 0) throw inputError(`message ${bad} has no role or no text`);
  return messages;
}

function formatPrompt(instructions, sections, last) {
  if (instructions.length + sections.length === 0) return last;
  const parts = [];
  if (instructions.length > 0) parts.push(`# Instructions\n\n${instructions.join("\n\n")}\n`);
  if (sections.length > 0) parts.push(`# Earlier messages\n\n${sections.join("\n")}`);
  return `${parts.join("\n")}\n# Message to answer\n\n${last}`;
}

// Fences a message. The fence is longer than all runs of backticks in it, so that the message cannot close it.
function formatSection({ role, content }) {
  const runs = content.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(3, ...runs.map((run) => run.length + 1)));
  return `## ${role}\n\n${fence}\n${content}\n${fence}\n`;
}
