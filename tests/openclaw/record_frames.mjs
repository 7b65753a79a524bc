// Records the frames of a real gateway, story by story, into tests/openclaw/frames/VERSION/STORY.jsonl.
//
// usage: scripts/record-openclaw-frames.sh [VERSION] [STORY...]
//
// A line is `{"dir":"send|recv|close","frame":...}`: a frame the client sent, a frame it received, or the close code and
// reason. stable.mjs normalises values that differ between recordings, except how the gateway splits a text into deltas.
// Takes about four minutes, mostly for retries of failing calls.
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";

import { Client, PROTOCOL, SCOPES, newDevice, sleep, startGateway } from "./gateway.mjs";
import { startModel } from "./model.mjs";
import { normaliser, stable } from "./stable.mjs";

const [target, ...only] = process.argv.slice(2);
const TRACEPARENT = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
const OLD = PROTOCOL === 3;

// Builds the parameters of one `agent` request, as the bridge sends them.
const turn = (message, more = {}) => ({
  message,
  agentId: "main",
  sessionKey: `agent:main:acct1:${randomUUID()}`,
  idempotencyKey: randomUUID(),
  deliver: false,
  timeout: 60,
  ...more,
});
const run = (client, message, more) => client.call("agent", turn(message, more), { final: true });
const chatEnd = (client, { idempotencyKey }) =>
  client.event(
    ({ event, payload }) =>
      event === "chat" && payload.runId === idempotencyKey && ["final", "error", "aborted"].includes(payload.state),
  );
const chat = ({ timeout, agentId, ...params }) => params;
const firstWords = (client, { idempotencyKey }) =>
  client.event(
    ({ event, payload }) =>
      event === "agent" && payload.runId === idempotencyKey && payload.stream === "assistant",
  );

// Runs a turn on a provider of its own, for answers that lock a provider for all sessions.
async function runOn(client, provider, message) {
  const params = turn(message);
  await client.call("sessions.patch", { key: params.sessionKey, model: `${provider}/fake` });
  return client.call("agent", params, { final: true });
}

// Stories of the handshake. Each sends its own first frame.
const handshakes = {
  handshake: (client) => client.connect(),
  "handshake-no-scopes": (client) => client.connect({ scopes: [] }),
  "bad-token": (client) => client.connect({ auth: { token: "wrong" } }),
  "no-token": (client) => client.connect({ auth: null }),
  "protocol-too-old": (client) => client.connect({ min: 1, max: 2 }),
  "protocol-too-new": (client) => client.connect({ min: 5, max: 9 }),
  "not-connect-first": async (client) => {
    await client.event(({ event }) => event === "connect.challenge");
    return client.call("health", {});
  },
  "not-json-first": async (client) => {
    await client.event(({ event }) => event === "connect.challenge");
    client.send("this is not JSON");
    return client.closed;
  },
};

const stories = {
  success: (client) => run(client, "{{say Hello from a scripted model}}"),
  words: (client) => run(client, "{{words 12 150}}"),
  tool: (client) => run(client, '{{tool exec {"command":"echo from-the-gateway"}}}'),
  "unknown-property": (client) => run(client, "hello", { outboundHeaders: { "x-run-token": "a" } }),
  "unknown-method": (client) => client.call("no.such.method", {}),
  "invalid-params": (client) => client.call("agent", { message: "", bogus: 1 }),
  "other-agents-key": (client) => run(client, "hello", { sessionKey: "agent:other:acct1:1" }),
  "upper-case-key": (client) => run(client, "{{say hello}}", { sessionKey: "agent:main:Acct1:RunA" }),
  traceparent: (client) => client.call("agent", turn("{{say hello}}"), { final: true, traceparent: TRACEPARENT }),
  "outbound-headers-patch": (client) =>
    client.call("sessions.patch", { key: "agent:main:acct1:patched", outboundHeaders: { "x-run-token": "a" } }),
  "model-per-session": async (client) => {
    const params = turn("{{say hello}}");
    await client.call("sessions.patch", { key: params.sessionKey, model: "cogni/fake-2" });
    return client.call("agent", params, { final: true });
  },
  "chat-history": async (client) => {
    const params = chat(turn("{{say Remember this.}}"));
    await client.call("chat.send", params);
    await chatEnd(client, params);
    return client.call("chat.history", { sessionKey: params.sessionKey, limit: 10 });
  },
  "chat-abort": async (client) => {
    const params = chat(turn("{{words 100 100}}"));
    await client.call("chat.send", params);
    await client.event(({ event, payload }) => event === "chat" && payload.state === "delta");
    await client.call("chat.abort", { sessionKey: params.sessionKey, runId: params.idempotencyKey });
    return chatEnd(client, params);
  },
  "agent-abort": async (client) => {
    const params = turn("{{words 40 100}}");
    await client.call("agent", params);
    await firstWords(client, params);
    await client.call("chat.abort", { sessionKey: params.sessionKey, runId: params.idempotencyKey });
    return client.call("agent.wait", { runId: params.idempotencyKey, timeoutMs: 20_000 });
  },
  wait: async (client) => {
    const params = turn("{{words 8 100}}");
    await client.call("agent", params);
    await client.call("agent.wait", { runId: params.idempotencyKey, timeoutMs: 100 });
    await client.call("agent.wait", { runId: params.idempotencyKey, timeoutMs: 20_000 });
    return client.call("agent.wait", { runId: params.idempotencyKey, timeoutMs: 100 });
  },
  "wait-failed": async (client) => {
    const params = turn("{{overflow}}");
    await client.call("agent", params, { final: true });
    return client.call("agent.wait", { runId: params.idempotencyKey, timeoutMs: 100 });
  },
  "wait-for-nothing": (client) => client.call("agent.wait", { runId: randomUUID(), timeoutMs: 100 }),
  "same-key-twice": async (client) => {
    const params = turn("{{words 8 100}}");
    const first = client.call("agent", params, { final: true });
    await firstWords(client, params);
    await client.call("agent", params);
    await first;
    return client.call("agent", params);
  },
  "two-at-once": (client) => Promise.all([run(client, "{{words 6 100}}"), run(client, "{{words 6 100}}")]),
  empty: (client) => run(client, "{{empty}}"),
  timeout: (client) => run(client, "{{hang}}", { timeout: 5 }),
  overflow: (client) => run(client, "{{overflow}}"),
  "status-401": (client) => runOn(client, "cogni-s1", "{{status 401}}"),
  "status-401-next": (client) => runOn(client, "cogni-s1", "{{say hello}}"),
  "status-402": (client) => runOn(client, "cogni-s2", "{{status 402}}"),
  "status-403": (client) => runOn(client, "cogni-s3", "{{status 403}}"),
  "chat-401": async (client) => {
    const params = chat(turn("{{status 401}}"));
    await client.call("sessions.patch", { key: params.sessionKey, model: "cogni-s1/fake" });
    await client.call("chat.send", params);
    return chatEnd(client, params);
  },
  approval: async (client) => {
    const params = turn('{{tool exec {"command":"echo approved"}}}');
    await client.call("sessions.patch", { key: params.sessionKey, execHost: "gateway", permissionMode: "guarded" });
    const ended = client.call("agent", params, { final: true });
    const { payload } = await client.event(({ event }) => event === "exec.approval.requested");
    await client.call("exec.approval.resolve", { id: payload.id, decision: "allow-once" });
    return ended;
  },
  "sub-agent": async (client) => {
    await run(client, '{{tool sessions_spawn {"task":"Say hello"}}}');
    return sleep(5000);
  },
};
const CAPS = { approval: ["tool-events", "exec-approvals", "approvals"] };
if (OLD) delete stories.approval;

// Stories whose retries take a minute or two. They run concurrently, each recorded without the others' frames.
const slowStories = {
  "status-429": (client) => run(client, "{{status 429}}"),
  "status-500": (client) => run(client, "{{status 500}}"),
  cut: (client) => run(client, "{{cut}}"),
  refused: (client) => runOn(client, "nowhere", "{{say hello}}"),
};

const selected = (entries) => Object.entries(entries).filter(([name]) => !only.length || only.includes(name));
let write;

// Returns the function that writes one story's frames.
function writer(gateway, model) {
  const ports = { [gateway.port]: 18789, [model.port]: 9099 };
  return (name, lines, options) => {
    const normalise = normaliser({ folder: gateway.folder, ports });
    const text = stable(lines, normalise, options).map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(join(target, `${name}.jsonl`), text.join(""));
    console.log(`${name}: ${text.length} frames`);
  };
}

// Runs one story on a new connection and writes its frames.
async function recordStory(gateway, name, story, { connects = true, own } = {}) {
  const client = new Client(gateway.port);
  await client.opened;
  if (connects) await client.connect({ caps: CAPS[name] });
  await story(client);
  await Promise.race([client.closed, sleep(300)]);
  await client.close();
  write(name, client.lines, { own: own?.(client) });
}

// Returns the names of a client's own runs and sessions.
const ownNames = (client) =>
  client.lines
    .filter(({ dir, frame }) => dir === "send" && frame.params?.sessionKey)
    .flatMap(({ frame }) => [frame.params.idempotencyKey, frame.params.sessionKey.toLowerCase()]);

// Records the gateway's answer to a frame above its limit.
async function oversize(gateway) {
  const client = new Client(gateway.port);
  await client.opened;
  await client.connect();
  client.send({ type: "req", id: "2", method: "agent", params: turn("x".repeat(600_000)) });
  await Promise.race([client.closed, sleep(5000)]);
  await client.close();
  write("oversize", client.lines);
}

// Records a gateway's shutdown, for an idle client and for a client with a run.
async function shutdown(gateway) {
  const [idle, busy] = [new Client(gateway.port), new Client(gateway.port)];
  await Promise.all([idle.opened, busy.opened]);
  await idle.connect();
  await busy.connect();
  const params = turn("{{words 20 150}}");
  await busy.call("agent", params);
  await firstWords(busy, params);
  await gateway.stop();
  await Promise.all([idle.closed, busy.closed]);
  write("shutdown", idle.lines, { own: ["gateway stopping", "reason"] });
  write("shutdown-in-run", busy.lines);
}

// Records a client from another machine: without a device, with an unknown device, and after its approval.
async function pairing(gateway, host) {
  const remote = async (name, device, story = () => {}) => {
    const client = new Client(gateway.port, host);
    await client.opened;
    const answer = await client.connect({ device });
    await story(client);
    await Promise.race([client.closed, sleep(300)]);
    await client.close();
    write(name, client.lines);
    return answer;
  };
  await remote("remote-no-device", undefined, (client) => client.call("agent", turn("hello")));
  const device = newDevice();
  const refused = await remote("remote-unpaired", device);
  const admin = new Client(gateway.port);
  await admin.opened;
  await admin.connect({ scopes: [...SCOPES, "operator.pairing"] });
  await admin.call("device.pair.list", {});
  const requestId = refused.error?.details?.requestId ?? admin.lines.at(-1).frame.payload.pending?.[0]?.requestId;
  await admin.call("device.pair.approve", { requestId });
  await admin.close();
  write("pair-approve", admin.lines);
  await remote("remote-paired", device, (client) => run(client, "{{say hello}}"));
}

// Runs `work` with a new gateway and stops the gateway after it.
async function withGateway(model, bind, work) {
  const folder = mkdtempSync(join(tmpdir(), "sw-frames-"));
  let early;
  try {
    const gateway = await startGateway({ folder, modelPort: model.port, bind, early: (client) => (early = client) });
    write = writer(gateway, model);
    try {
      if (early) write("starting", early.lines);
      await work(gateway);
    } finally {
      await gateway.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

mkdirSync(target, { recursive: true });
const model = await startModel();
await withGateway(model, "loopback", async (gateway) => {
  for (const [name, story] of selected(handshakes)) await recordStory(gateway, name, story, { connects: false });
  for (const [name, story] of selected(stories)) await recordStory(gateway, name, story);
  await Promise.all(selected(slowStories).map(([name, story]) => recordStory(gateway, name, story, { own: ownNames })));
  if (selected({ oversize }).length) await oversize(gateway);
  if (selected({ shutdown }).length) await shutdown(gateway);
});
const host = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal)?.address;
if (host && selected({ pairing }).length) await withGateway(model, "lan", (gateway) => pairing(gateway, host));
model.stop();
process.exit(0);
