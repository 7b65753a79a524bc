// Holds conversations with the chat of `sluice up` through Vercel's AI SDK, in every pinned version and as a React
// application does. Prints one JSON line per client and case, with the messages that the client has rebuilt.
// tests/clients/chat_clients.rs compares them with the thread.
//
// usage: TOKEN=... scripts/chat-clients.sh node tests/sdk/ai_chat.mjs URL
import { createRequire } from "node:module";
import { join } from "node:path";

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: run this with scripts/chat-clients.sh node");
const installed = createRequire(join(process.env.PACKAGES, "package.json"));
const api = `${process.argv[2]}/api/v1/ai/chat`;
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const VERSIONS = ["5.0.0", "5.0.277", "6.0.0", "6.0.326", "7.0.0", "7.0.173"];

// Holds what the SDK rebuilds, as the bindings of a framework do.
class State {
  status = "ready";
  error = undefined;

  constructor(messages = []) {
    this.messages = messages;
  }

  pushMessage = (message) => (this.messages = [...this.messages, message]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.with(index, this.snapshot(message)));
  snapshot = (value) => structuredClone(value);
}

// Returns the class `Chat` of a version that has no framework.
function bare({ AbstractChat }) {
  return class extends AbstractChat {
    constructor({ messages, ...init }) {
      super({ ...init, state: new State(messages) });
    }
  };
}

class Client {
  constructor(name, ai, Chat) {
    this.name = name;
    this.ai = ai;
    this.Chat = Chat;
  }

  thread(name) {
    return `${this.name}-${name}`.replaceAll(".", "-");
  }

  transport(agent, more) {
    return new this.ai.DefaultChatTransport({ api, headers, body: { graphName: agent }, ...more });
  }

  chat(thread, agent, more) {
    return new this.Chat({ id: this.thread(thread), transport: this.transport(agent), ...more });
  }
}

const told = ({ status, error, messages }) => ({ status, error: error?.message ?? null, messages });

async function until(condition) {
  for (let tries = 0; !condition(); tries += 1) {
    if (tries > 4000) throw new Error(`never so: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// Returns whether the answer's status is `running`: its container is there.
function runs(chat) {
  const parts = chat.messages.at(-1)?.parts ?? [];
  return parts.some(({ type, data }) => type === "data-status" && data.phase === "running");
}

// Answers a request with `chunks`, as no version of Sluicegate does.
const answers = (chunks) => async () => {
  const text = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
};
const answerWith = (chunks) =>
  answers([{ type: "start" }, { type: "start-step" }, ...chunks, { type: "finish-step" }, { type: "finish" }]);

const CASES = {
  text: async (client) => {
    const chat = client.chat("text", "test:sh");
    await chat.sendMessage({ text: "one" });
    await chat.regenerate();
    await chat.sendMessage({ text: "two" });
    return told(chat);
  },
  tools: async (client) => {
    const chat = client.chat("tools", "test:tools");
    await chat.sendMessage({ text: "one" });
    return told(chat);
  },
  read: async (client) => {
    const question = { id: "q1", role: "user", parts: [{ type: "text", text: "one" }] };
    const chatId = client.thread("read");
    const trigger = "submit-message";
    const stream = await client.transport("test:tools").sendMessages({ chatId, messages: [question], trigger });
    let answer = null;
    for await (const message of client.ai.readUIMessageStream({ stream, terminateOnError: true })) answer = message;
    return { status: "ready", error: null, messages: [question, answer] };
  },
  error: async (client) => {
    const chat = client.chat("error", "test:fails");
    await chat.sendMessage({ text: "one" });
    return told(chat);
  },
  refused: async (client) => {
    const chat = client.chat("refused", "test:none");
    await chat.sendMessage({ text: "one" });
    return told(chat);
  },
  stop: async (client) => {
    const chat = client.chat("stop", "test:long");
    const sent = chat.sendMessage({ text: "one" });
    await until(() => runs(chat));
    const stopped = await fetch(`${api}/${chat.id}/stop`, { method: "POST", headers });
    await sent;
    return { ...told(chat), stopped: stopped.status };
  },
  resume: async (client) => {
    const first = client.chat("resume", "test:slow");
    await first.resumeStream(); // nothing is active: 204
    const before = told(first);
    const sent = first.sendMessage({ text: "one" });
    await until(() => runs(first));
    await first.stop(); // closes the connection, as a reload does
    await sent;
    const second = client.chat("resume", "test:slow", { messages: first.messages.slice(0, 1) });
    await second.resumeStream();
    const resumed = told(second);
    await second.resumeStream(); // 204 again
    return { ...told(second), before, resumed };
  },
  // The control: a chunk that not all versions know.
  unknown: async (client) => {
    const transport = (chunks) => client.transport("test:sh", { fetch: answerWith(chunks) });
    const known = new client.Chat({ transport: transport([]) });
    await known.sendMessage({ text: "one" });
    const unknown = new client.Chat({ transport: transport([{ type: "reset-step" }]) });
    await unknown.sendMessage({ text: "one" });
    return { status: known.status, error: known.error?.message ?? null, unknown: unknown.status };
  },
};

async function holds(client) {
  for (const [name, held] of Object.entries(CASES)) {
    const line = { client: client.name, case: name, thread: client.thread(name), ...(await held(client)) };
    console.log(JSON.stringify(line));
  }
}

const clients = VERSIONS.map((version) => {
  const ai = installed(`ai-${version.replaceAll(".", "-")}`);
  return new Client(`ai-${version}`, ai, bare(ai));
});
clients.push(new Client("react", installed("ai"), installed("@ai-sdk/react").Chat));
await Promise.all(clients.map(holds));
