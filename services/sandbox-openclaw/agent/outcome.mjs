// What the end of OpenClaw means: its own envelope in the words of Sluicegate's. Pure.

const MOST_MESSAGE = 2000; // characters of an error that are passed on

// `{code, signal, stdout, stderr}` of the process as `{exit, payloads, error, agentMeta}`.
export function translated({ code, signal, stdout, stderr }) {
  const envelope = lastEnvelope(stdout);
  const payloads = texts(envelope);
  const failed = (name, why) => ({
    exit: name === "timeout" ? 2 : 1,
    payloads,
    error: { code: name, message: clipped(why) },
    agentMeta: meta(envelope),
  });
  if (signal) return failed("openclaw_killed", `OpenClaw was ended by ${signal}`);
  if (code === 2 || envelope?.status === "timeout") return failed("timeout", reason(envelope, stderr, code));
  if (code !== 0 || envelope?.ok !== true) return failed(kind(envelope), reason(envelope, stderr, code));
  return { exit: 0, payloads, error: null, agentMeta: meta(envelope) };
}

// The same of an OpenClaw without `agent exec`, which says of everything that it went well, a model's error as its answer, and
// counts nothing of it. `transcript` is what it has kept of the session, a JSON object on each line.
export function translatedOlder({ code, signal, stdout, stderr }, transcript) {
  const envelope = lastObject(stdout, (found) => Array.isArray(found?.payloads) && typeof found.meta === "object");
  const agentMeta = envelope?.meta.agentMeta && metaOf(envelope.meta.agentMeta);
  const failed = (name, why) => ({
    exit: name === "timeout" ? 2 : 1,
    payloads: [],
    error: { code: name, message: clipped(why) },
    agentMeta,
  });
  if (signal) return failed("openclaw_killed", `OpenClaw was ended by ${signal}`);
  if (code !== 0 || !envelope) return failed("openclaw_error", reason(null, stderr, code));
  if (envelope.meta.aborted === true) return failed("timeout", "OpenClaw gave up waiting");
  const last = lastAnswer(transcript);
  const payloads = texts(envelope);
  if (last === null ? isUncounted(envelope) : last.stopReason === "error") {
    return failed("model_error", last?.errorMessage ?? payloads.at(-1)?.text ?? "the model failed");
  }
  if (payloads.length === 0) return failed("no_answer", "the model gave no answer");
  return { exit: 0, payloads, error: null, agentMeta };
}

function isUncounted(envelope) {
  const { input, output } = envelope.meta.agentMeta?.usage ?? {};
  return !input && !output;
}

function lastAnswer(transcript) {
  const answers = transcript.split("\n").flatMap((line) => {
    try {
      const { message } = JSON.parse(line);
      return message?.role === "assistant" ? [message] : [];
    } catch {
      return []; // an empty line, or one that was not written to its end
    }
  });
  return answers.at(-1) ?? null;
}

// The last JSON object of `text` that says whether a run went well. Whatever else is printed may stand before and behind it.
function lastEnvelope(text) {
  return lastObject(text, (found) => typeof found?.ok === "boolean");
}

function lastObject(text, isIt) {
  for (let start = text.lastIndexOf("{"); start >= 0; start = start > 0 ? text.lastIndexOf("{", start - 1) : -1) {
    if (start > 0 && text[start - 1] !== "\n") continue; // it begins a line
    for (let end = text.lastIndexOf("}"); end > start; end = text.lastIndexOf("}", end - 1)) {
      if (end + 1 < text.length && !/[\r\n]/.test(text[end + 1])) continue; // and ends one
      try {
        const found = JSON.parse(text.slice(start, end + 1));
        if (isIt(found)) return found;
        break;
      } catch {
        // Something behind it is no part of it.
      }
    }
  }
  return null;
}

// Pieces of an error are no answer.
function texts(envelope) {
  const said = Array.isArray(envelope?.payloads) ? envelope.payloads : [];
  return said
    .filter((payload) => typeof payload?.text === "string" && payload.isError !== true)
    .map(({ text, mediaUrl }) => ({ text, mediaUrl: mediaUrl ?? null }));
}

// That all went well, but that the model had nothing to say after some turns, has three names, depending on how often it was
// asked.
const SILENT = new Set(["fallback_exhausted", "error_payload", "agent_error"]);

function kind(envelope) {
  const name = envelope?.error?.kind ?? envelope?.error?.type;
  if (SILENT.has(name) && envelope.assistantTurns > 0 && texts(envelope).length === 0) return "no_answer";
  return typeof name === "string" && /^[a-z][a-z_]{0,40}$/.test(name) ? name : "openclaw_error";
}

function reason(envelope, stderr, code) {
  const told = envelope?.error?.message;
  if (typeof told === "string" && told !== "") return told;
  const last = stderr.split("\n").findLast((line) => line.trim() !== "");
  return `OpenClaw ended with exit code ${code} and without an answer${last ? `: ${last}` : ""}`;
}

function clipped(text) {
  return text.length > MOST_MESSAGE ? `${text.slice(0, MOST_MESSAGE)}…` : text;
}

function meta(envelope) {
  return envelope ? metaOf(envelope) : undefined;
}

function metaOf({ sessionId, provider, model, usage, toolSummary, assistantTurns }) {
  return { sessionId, provider, model, usage, toolSummary, assistantTurns };
}
