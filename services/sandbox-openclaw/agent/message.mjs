// What OpenClaw is asked: the last message, and before it what was said until then, because it takes one text. Pure.

// The most that OpenClaw takes from a file, in bytes;
export const MOST = 4 << 20;
// and the most that Linux passes as one argument, less its end.
export const MOST_ARGUMENT = (128 << 10) - 1;

export class AgentError extends Error {
  constructor(code, message) {
    super(message.length > 2000 ? `${message.slice(0, 2000)}…` : message);
    this.code = code;
  }
}

const wrong = (why) => new AgentError("input_error", `messages.json: ${why}`);

// The text for `messages`, a JSON list of `{role, content}` that ends with the one to answer, of at most so many bytes.
export function message(messages, most = MOST) {
  let said;
  try {
    said = JSON.parse(messages);
  } catch (error) {
    throw wrong(`not JSON: ${error.message}`);
  }
  if (!Array.isArray(said) || said.length === 0) throw wrong("not a list of messages, or an empty one");
  const bad = said.findIndex((one) => typeof one?.role !== "string" || typeof one?.content !== "string");
  if (bad >= 0) throw wrong(`message ${bad} has no role or no text`);
  const last = said.pop();
  if (last.role !== "user") throw wrong(`the last message is of the ${last.role}; OpenClaw answers a user`);
  if (last.content.trim() === "") throw wrong("the last message is empty");
  if (Buffer.byteLength(last.content) > most) throw wrong(`the last message is larger than ${most} bytes, which OpenClaw takes`);
  return said.length === 0 ? last.content : withHistory(said, last.content, most);
}

// As much of the history as there is room for, the latest first to stay.
function withHistory(history, last, most) {
  const frame = (told, left) =>
    `# Conversation so far\n\n${left ? "Its beginning is left out; .cogni/conversation.md has all of it.\n\n" : ""}` +
    `${told.join("\n")}\n# Message to answer\n\n${last}`;
  const told = history.map(section);
  let from = 0;
  while (from < told.length && Buffer.byteLength(frame(told.slice(from), from > 0)) > most) from += 1;
  return from === told.length ? last : frame(told.slice(from), from > 0);
}

// No text can end its block: the fence is longer than any in it.
function section({ role, content }) {
  const longest = Math.max(2, ...(content.match(/`+/g) ?? []).map((ticks) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `## ${role}\n\n${fence}\n${content}${content === "" || content.endsWith("\n") ? "" : "\n"}${fence}\n`;
}
