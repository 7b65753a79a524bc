// Normalises recorded frames, so that recordings from different machines and times are equal. Replaces ids, times, paths,
// ports, keys and durations with fixed values, numbered in order of appearance, so that equal values stay equal. Omits long
// values that clients do not use: prompt reports, health snapshots, lists of methods.
const TIME = 1795200000000;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const MAX_TEXT_CHARS = 400;
const LEFT_OUT = new Set([
  "snapshot",
  "systemPromptReport",
  "terminalReceipt",
  "contextBudgetStatus",
  "executionTrace",
  "credentialSource",
  "lastCallUsage",
  "controlUiWidgetKinds",
  "controlUiLinkReaders",
  "pluginSurfaceUrls",
  "canvasHostUrl",
  "thinkingLevels",
  "agentRuntime",
  "deltaCursor",
  "transcriptPosition",
]);
// Some events repeat the whole session row; only these fields are kept.
const ROW = new Set("runId stream data sessionKey sessionId agentId spawnedBy seq ts phase status".split(" "));
// Durations that are settings, not measurements.
const SETTINGS = new Set(["tickIntervalMs", "restartExpectedMs", "retryAfterMs", "timeoutMs"]);
const SECRETS = /^(publicKey|signature|nonce|deviceToken|recoveryScope|lifecycleRevision)$/;
const METHODS = /^(connect|health|status|agent|agent\.wait|chat\.\w+|sessions\.(list|patch|create|abort|compact|delete)|exec\.approval\.\w+|device\.pair\.\w+)$/;
// Events without information about a run beyond its own events. Their payload is omitted.
const NOISE = /^(health|presence|heartbeat|task|cron|update\.available|models\.snapshot|sessions\.changed|chat\.metadata\.changed)$/;

// Returns a function that normalises one frame.
export function normaliser({ folder, ports }) {
  const seen = new Map();
  const numbered = (kind, value, make) => {
    const known = seen.get(kind) ?? seen.set(kind, new Map()).get(kind);
    if (!known.has(value)) known.set(value, make(known.size + 1));
    return known.get(value);
  };
  const text = (value) => {
    let stable = value.replaceAll(folder, "/home/node");
    for (const [port, fixed] of Object.entries(ports)) stable = stable.replaceAll(`:${port}`, `:${fixed}`);
    stable = stable
      .replace(UUID, (id) => numbered("uuid", id, (n) => `00000000-0000-4000-8000-${`${n}`.padStart(12, "0")}`))
      .replace(/\b20\d\d-\d\d-\d\d[T ][\d:.-]+Z?/g, "2026-11-20T00:00:00.000Z")
      .replace(/(?<=release-)\w+-[\w.:-]+/, "build")
      .replace(/\b[0-9a-f]{64}\b/g, (id) => numbered("hash", id, (n) => `${n}`.padStart(64, "0")));
    return stable.length > MAX_TEXT_CHARS ? `${stable.slice(0, MAX_TEXT_CHARS)} …` : stable;
  };
  const value = (name, inner) => {
    if (typeof inner === "string" && SECRETS.test(name)) return numbered(name, inner, (n) => `${name}-${n}`);
    if (typeof inner === "string" && name === "host") return "gateway";
    if (name === "remoteIp") return "192.0.2.1";
    if (typeof inner === "string" && name === "sessionId" && !inner.match(UUID)) return numbered(name, inner, (n) => `session-${n}`);
    if (typeof inner === "string") return text(inner);
    if (typeof inner === "number" && inner > 1.7e12) return TIME;
    if (typeof inner === "number" && /(Ms|ms)$/.test(name) && !SETTINGS.has(name)) return 100;
    if (typeof inner === "number" && name === "pid") return 100;
    if (Array.isArray(inner) && name === "methods") return inner.filter((method) => METHODS.test(method));
    if (Array.isArray(inner) && name === "participants") return [];
    if (Array.isArray(inner)) return inner.map((one) => value("", one));
    return inner && typeof inner === "object" ? object(inner) : inner;
  };
  const object = (whole) => {
    const row = "stream" in whole && "session" in whole;
    const kept = Object.entries(whole).filter(([name]) => !LEFT_OUT.has(name) && (!row || ROW.has(name)));
    return Object.fromEntries(kept.map(([name, inner]) => [name, value(name, inner)]));
  };
  return (frame) => {
    if (typeof frame === "string") return text(frame);
    const noise = frame.type === "event" && NOISE.test(frame.event);
    return object(noise ? { ...frame, payload: {} } : frame);
  };
}

// Normalises the lines of one connection. Omits frames of other connections' runs and renumbers the events.
export function stable(lines, normalise, { own } = {}) {
  let count = 0;
  const isOwn = ({ dir, frame }) => {
    if (!own || dir !== "recv" || frame.type !== "event") return true;
    const about = JSON.stringify(frame.payload ?? null);
    return frame.event === "connect.challenge" || own.some((word) => about.includes(word));
  };
  return lines.filter(isOwn).map(({ dir, frame }) => {
    const kept = normalise(frame);
    if (typeof kept.seq === "number" && kept.type === "event") kept.seq = ++count;
    return { dir, frame: kept };
  });
}
