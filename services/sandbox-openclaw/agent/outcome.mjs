// Translates OpenClaw's own envelope into the sandbox program contract. Performs no I/O.

const MAX_ERROR_CHARS = 2000;

// Converts `{code, signal, stdout, stderr}` of the process to `{exit, payloads, error, agentMeta}`.
export function parseOutcome({ code, signal, stdout, stderr }) {
  const envelope = lastEnvelope(stdout);
  const payloads = texts(envelope);
  const failed = (name, why) => ({
    exit: name === "timeout" ? 2 : 1,
    payloads,
    error: { code: name, message: truncate(why) },
    agentMeta: meta(envelope),
  });
  if (signal) return failed("openclaw_killed", `OpenClaw was ended by ${signal}`);
  if (code === 2 || envelope?.status === "timeout") return failed("timeout", reason(envelope, stderr, code));
  if (code !== 0 || envelope?.ok !== true) return failed(kind(envelope), reason(envelope, stderr, code));
  return { exit: 0, payloads, error: null, agentMeta: meta(envelope) };
}

// Does the same for an OpenClaw without `agent exec`. That version reports every outcome as a success, with a model's error as
// the answer and without usage. `transcript` is the session as OpenClaw stored it, one JSON object on each line.
export function parseLocalOutcome({ code, signal, stdout, stderr }, transcript) {
  const envelope = lastObject(stdout, (found) => Array.isArray(found?.payloads) && typeof found.meta === "object");
  const agentMeta = envelope?.meta.agentMeta && metaOf(envelope.meta.agentMeta);
  const failed = (name, why) => ({
    exit: name === "timeout" ? 2 : 1,
    payloads: [],
    error: { code: name, message: truncate(why) },
    agentMeta,
  });
  if (signal) return failed("openclaw_killed", `OpenClaw was ended by ${signal}`);
  if (code !== 0 || !envelope) return failed("openclaw_error", reason(null, stderr, code));
  if (envelope.meta.aborted === true) return failed("timeout", "OpenClaw gave up waiting");
  const last = lastAnswer(transcript);
  const payloads = texts(envelope);
  if (last === null ? hasNoUsage(envelope) : last.stopReason === "error") {
    return failed("model_error", last?.errorMessage ?? payloads.at(-1)?.text ?? "the model failed");
  }
  if (payloads.length === 0) return failed("no_answer", "the model gave no answer");
  return { exit: 0, payloads, error: null, agentMeta };
}

// Returns whether the envelope reports no tokens.
function hasNoUsage(envelope) {
  const { input, output } = envelope.meta.agentMeta?.usage ?? {};
  return !input && !output;
}

// Returns the transcript's last message of the assistant, or null.
function lastAnswer(transcript) {
  const answers = transcript.split("\n").flatMap((line) => {
    try {
      const { message } = JSON.parse(line);
      return message?.role === "assistant" ? [message] : [];
    } catch {
      return []; // an empty line, or one that was cut
    }
  });
  return answers.at(-1) ?? null;
}

// Returns the last JSON object of `text` that reports success or failure. Other output may precede and follow it.
function lastEnvelope(text) {
  return lastObject(text, (found) => typeof found?.ok === "boolean");
}

// Returns the last JSON object of whole lines that `matches` accepts, or null.
function lastObject(text, matches) {
  for (let start = text.lastIndexOf("{"); start >= 0; start = start > 0 ? text.lastIndexOf("{", start - 1) : -1) {
    if (start > 0 && text[start - 1] !== "\n") continue; // the object begins a line
    for (let end = text.lastIndexOf("}"); end > start; end = text.lastIndexOf("}", end - 1)) {
      if (end + 1 < text.length && !/[\r\n]/.test(text[end + 1])) continue; // the object ends a line
      try {
        const found = JSON.parse(text.slice(start, end + 1));
        if (matches(found)) return found;
        break;
      } catch {
        // The text up to this brace is not one object: try the brace before it.
      }
    }
  }
  return null;
}

// Returns the texts of the answer, without those of an error.
function texts(envelope) {
  const payloads = Array.isArray(envelope?.payloads) ? envelope.payloads : [];
  return payloads
    .filter((payload) => typeof payload?.text === "string" && payload.isError !== true)
    .map(({ text, mediaUrl }) => ({ text, mediaUrl: mediaUrl ?? null }));
}

// OpenClaw's three names for a turn that succeeded without an answer; the name depends on the number of calls.
const EMPTY_ANSWER_KINDS = new Set(["fallback_exhausted", "error_payload", "agent_error"]);

// Returns the error code for a failed envelope.
function kind(envelope) {
  const name = envelope?.error?.kind ?? envelope?.error?.type;
  if (EMPTY_ANSWER_KINDS.has(name) && envelope.assistantTurns > 0 && texts(envelope).length === 0) return "no_answer";
  return typeof name === "string" && /^[a-z][a-z_]{0,40}$/.test(name) ? name : "openclaw_error";
}

// Returns the envelope's error message, or one built from the last line of stderr.
function reason(envelope, stderr, code) {
  const message = envelope?.error?.message;
  if (typeof message === "string" && message !== "") return message;
  const last = stderr.split("\n").findLast((line) => line.trim() !== "");
  return `OpenClaw ended with exit code ${code} and without an answer${last ? `: ${last}` : ""}`;
}

function truncate(text) {
  return text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)}…` : text;
}

function meta(envelope) {
  return envelope ? metaOf(envelope) : undefined;
}

function metaOf({ sessionId, provider, model, usage, toolSummary, assistantTurns }) {
  return { sessionId, provider, model, usage, toolSummary, assistantTurns };
}
