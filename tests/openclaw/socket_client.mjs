// Drives OpenClaw's own gateway client through a turn that asks a person, with a disconnection in its middle.
//
// usage: scripts/openclaw.sh node tests/openclaw/socket_client.mjs URL AGENT MESSAGE
//
// SLUICE_TOKEN has the token. Prints one line of JSON for each fact: the agents, the request, what a new client finds, and
// the end of the answer.
const { GatewayClient } = await import(`${process.env.OPENCLAW_PACKAGE}/dist/plugin-sdk/gateway-runtime.js`);

const [url, agent, message] = process.argv.slice(2);
const sessionKey = `agent:${agent}:main`;
const told = (fact) => console.log(JSON.stringify(fact));

// Connects a client; returns it with a function that waits for an event.
async function connect() {
  const events = [];
  const waiting = [];
  const look = () => {
    for (const entry of [...waiting]) {
      const found = events.find(entry.isWanted);
      if (found) waiting.splice(waiting.indexOf(entry), 1) && entry.resolve(found);
    }
  };
  const client = await new Promise((resolve, reject) => {
    const client = new GatewayClient({
      url, token: process.env.SLUICE_TOKEN, clientName: "gateway-client", clientVersion: "1", mode: "backend",
      minProtocol: 3, maxProtocol: 4, deviceIdentity: null, scopes: ["operator.read", "operator.write", "operator.approvals"],
      onHelloOk: () => resolve(client), onConnectError: reject,
      onEvent: (event) => { events.push(event); look(); },
    });
    client.start();
  });
  const until = (isWanted) => new Promise((resolve) => { waiting.push({ isWanted, resolve }); look(); });
  return { client, events, until };
}

const first = await connect();
const { agents } = await first.client.request("agents.list", {});
told({ agents: agents.map(({ id }) => id) });
const sent = await first.client.request("chat.send", { sessionKey, message, deliver: false, idempotencyKey: crypto.randomUUID() });
const asked = await first.until(({ event }) => event === "exec.approval.requested");
told({ asked: asked.payload.request.command, sessionKey: asked.payload.request.sessionKey });
first.client.stop();

const second = await connect();
const history = await second.client.request("chat.history", { sessionKey, limit: 10 });
const pending = await second.client.request("exec.approval.list", {});
told({ running: history.inFlightRun?.runId === sent.runId, messages: history.messages.length, pending: pending.map(({ id }) => id === asked.payload.id) });
await second.client.request("exec.approval.resolve", { id: pending[0].id, decision: "allow-once" });
const isLast = ({ event, payload }) => event === "chat" && payload.runId === sent.runId && payload.state === "final";
const last = await second.until(isLast);
told({ answer: last.payload.message.content[0].text, finals: second.events.filter(isLast).length });
const after = await second.client.request("chat.history", { sessionKey, limit: 10 });
told({ messages: after.messages.map(({ role }) => role) });
second.client.stop();
process.exit(0);
