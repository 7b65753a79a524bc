// Defines the errors of an agent's run. Their codes are the only ones that the last line of a run can have.

// Codes and their meanings. README.md has the same table.
export const CODES = {
  config_error: "a variable of the sandbox is missing or invalid",
  input_error: "the conversation is missing or invalid",
  start_error: "the agent's program cannot be started",
  model_error: "a model call failed, and the agent gave up",
  no_answer: "the agent ended without an answer",
  turn_limit: "the agent reached its own limit of turns",
  agent_killed: "a signal ended the agent",
  agent_error: "the agent reported another failure, or ended with an exit code",
};

const MAX_MESSAGE_CHARS = 2000;

export class AgentError extends Error {
  constructor(code, message) {
    super(truncate(message, MAX_MESSAGE_CHARS));
    if (!(code in CODES)) throw new TypeError(`unknown error code ${code}`);
    this.code = code;
  }
}

// Returns the first `max` UTF-16 units of `text`, with a mark if there were more. Does not cut a character into halves.
export function truncate(text, max) {
  return text.length > max ? `${text.slice(0, max).replace(/[\ud800-\udbff]$/, "")}…` : text;
}
