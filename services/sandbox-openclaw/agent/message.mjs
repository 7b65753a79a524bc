// Builds the one text that OpenClaw accepts: the conversation so far, then the message to answer. Performs no I/O.

// OpenClaw's limit for a message from a file.
export const MAX_MESSAGE_BYTES = 4 << 20;
// Linux's limit for one argument, without its terminating zero.
export const MAX_ARGUMENT_BYTES = (128 << 10) - 1;

export class AgentError extends Error {
  constructor(code, message) {
    super(message.length > 2000 ? `${message.slice(0, 2000)}…` : message);
    this.code = code;
  }
}

const inputError = (why) => new AgentError("input_error", `messages.json: ${why}`);

// Builds a text of at most `maxBytes` from `messages`, a JSON list of `{role, content}` that ends with the one to answer.
export function buildMessage(messages, maxBytes = MAX_MESSAGE_BYTES) {
  let conversation;
  try {
    conversation = JSON.parse(messages);
  } catch (error) {
    throw inputError(`not JSON: ${error.message}`);
  }
  if (!Array.isArray(conversation) || conversation.length === 0) throw inputError("not a list of messages, or an empty one");
  const bad = conversation.findIndex((one) => typeof one?.role !== "string" || typeof one?.content !== "string");
  if (bad >= 0) throw inputError(`message ${bad} has no role or no text`);
  const last = conversation.pop();
  if (last.role !== "user") throw inputError(`the last message has role ${last.role}; OpenClaw answers a user`);
  if (last.content.trim() === "") throw inputError("the last message is empty");
  if (Buffer.byteLength(last.content) > maxBytes) {
    throw inputError(`the last message is larger than ${maxBytes} bytes, OpenClaw's limit`);
  }
  return conversation.length === 0 ? last.content : addHistory(conversation, last.content, maxBytes);
}

// Puts as much of the history in front of the message as fits. Drops the oldest messages first.
function addHistory(history, last, maxBytes) {
  const format = (sections, isTruncated) =>
    `# Conversation so far\n\n${isTruncated ? "Its beginning is left out; .cogni/conversation.md has all of it.\n\n" : ""}` +
    `${sections.join("\n")}\n# Message to answer\n\n${last}`;
  const sections = history.map(formatSection);
  let from = 0;
  while (from < sections.length && Buffer.byteLength(format(sections.slice(from), from > 0)) > maxBytes) from += 1;
  return from === sections.length ? last : format(sections.slice(from), from > 0);
}

// Fences a message. The fence is longer than any in the text, so no text can end its own block.
function formatSection({ role, content }) {
  const longest = Math.max(2, ...(content.match(/`+/g) ?? []).map((ticks) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `## ${role}\n\n${fence}\n${content}${content === "" || content.endsWith("\n") ? "" : "\n"}${fence}\n`;
}
