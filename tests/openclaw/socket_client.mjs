// Drives OpenClaw's own gateway client through a turn that asks a person, with a disconnection in its middle.
//
// usage: scripts/openclaw.sh node tests/openclaw/socket_client.mjs URL AGENT MESSAGE
//
// SLUICE_TOKEN has the token. Prints one line of JSON for each fact: the agents, the request, what a new client finds, the end
// of the answer, and what of all that was received OpenClaw's own schema judged, with its complaints.
import { defines, errors, subject } from "./schema.mjs";

const { GatewayClient } = await import(`${process.env.OPENCLAW_PACKAGE}/dist/plugin-sdk/gateway-runtime.js`);

const [url, agent, message] = process.argv.slice(2);
const sessionKey = `agent:${agent}:main`;
const told = (fact) => console.log(JSON.stringify(fact));

const judged = new Set();
const faults = [];
function judge(name, value) {
  if (!defines(name)) return;
  judged.add(name);
  faults.push(...errors(name, value));
}
// Judges an event. Real gateways send these two with events of agents as well, which the schema does not know.
function judgeEvent({ event, payload }) {
  const { agentId, sessionKey, ...known } = payload ?? {};
  judge(`${subject(event)}Event`, event === "agent" ? known : payload);
}

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
      onHelloOk: (hello) => { judge("HelloOk", hello); resolve(client); }, onConnectError: reject,
      onEvent: (event) => { judgeEvent(event); events.push(event); look(); },
    });
    client.start();
  });
  const request = async (method, params) => {
    const answer = await client.request(method, params);
    judge(`${subject(method)}Result`, answer);
    return answer;
  };
  const until = (isWanted) => new Promise((resolve) => { waiting.push({ isWanted, resolve }); look(); });
  return { client, request, events, until };
}

const first = await connect();
const { agents } = await first.request("agents.list", {});
told({ agents: agents.map(({ id }) => id) });
const sent = await first.request("chat.send", { sessionKey, message, deliver: false, idempotencyKey: crypto.randomUUID() });
const asked = await first.until(({ event }) => event === "exec.approval.requested");
told({ asked: asked.payload.request.command, sessionKey: asked.payload.request.sessionKey });
first.client.stop();

const second = await connect();
const history = await second.request("chat.history", { sessionKey, limit: 10 });
const pending = await second.request("exec.approval.list", {});
told({ running: history.inFlightRun?.runId === sent.runId, messages: history.messages.length, pending: pending.map(({ id }) => id === asked.payload.id) });
await second.request("exec.approval.resolve", { id: pending[0].id, decision: "allow-once" });
const isLast = ({ event, payload }) => event === "chat" && payload.runId === sent.runId && payload.state === "final";
const last = await second.until(isLast);
told({ answer: last.payload.message.content[0].text, finals: second.events.filter(isLast).length });
const after = await second.request("chat.history", { sessionKey, limit: 10 });
told({ messages: after.messages.map(({ role }) => role) });
for (const method of ["models.list", "commands.list", "agents.files.list"]) await second.request(method, { agentId: agent });
await second.request("question.list", {});
const name = "SOUL.md";
await second.request("agents.files.get", { agentId: agent, name });
await second.request("agents.files.set", { agentId: agent, name, content: "Be kind." });
await second.request("agent.identity.get", { agentId: agent });
await second.request("agents.create", { name: "Second", workspace: "sluicegate/second" });
await second.request("agents.update", { agentId: "second", name: "Other" });
await second.request("agents.delete", { agentId: "second" });
told({ judged: [...judged].sort(), faults });
second.client.stop();
process.exit(0);
