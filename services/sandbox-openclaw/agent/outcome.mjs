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

// The last JSON object of `text` that says whether a run went well. Whatever else is printed may stand before and behind it.
function lastEnvelope(text) {
  for (let start = text.lastIndexOf("{"); start >= 0; start = start > 0 ? text.lastIndexOf("{", start - 1) : -1) {
    if (start > 0 && text[start - 1] !== "\n") continue; // it begins a line
    for (let end = text.lastIndexOf("}"); end > start; end = text.lastIndexOf("}", end - 1)) {
      if (end + 1 < text.length && !/[\r\n]/.test(text[end + 1])) continue; // and ends one
      try {
        const found = JSON.parse(text.slice(start, end + 1));
        if (typeof found?.ok === "boolean") return found;
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

function kind(envelope) {
  const name = envelope?.error?.kind ?? envelope?.error?.type;
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
  if (!envelope) return undefined;
  const { sessionId, provider, model, usage, toolSummary, assistantTurns } = envelope;
  return { sessionId, provider, model, usage, toolSummary, assistantTurns };
}
