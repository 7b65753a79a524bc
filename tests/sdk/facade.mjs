// Uses agents as models through OpenAI's SDK for Node and LangChain. Prints one JSON line per client and case.
// tests/clients/chat_clients.rs has what each must say; facade.py has the same cases for Python.
//
// usage: TOKEN=... scripts/chat-clients.sh node tests/sdk/facade.mjs URL
import { createRequire } from "node:module";
import { join } from "node:path";

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: run this with scripts/chat-clients.sh node");
const installed = createRequire(join(process.env.PACKAGES, "package.json"));
const { OpenAI } = installed("openai");
const { ChatOpenAI } = installed("@langchain/openai");

const baseURL = `${process.argv[2]}/v1`;
const TOKEN = process.env.TOKEN;
const MESSAGES = [
  { role: "system", content: "Be short." },
  { role: "user", content: "one" },
];

async function all(stream) {
  const chunks = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

// Returns the class of the error of a call, with its status and code.
async function outcome(call) {
  try {
    return await call();
  } catch (error) {
    return [error.constructor.name, error.status ?? null, error.code ?? null];
  }
}

const usage = ({ prompt_tokens, completion_tokens }) => [prompt_tokens > 0, completion_tokens > 0];
const used = ({ input_tokens, output_tokens }) => [input_tokens > 0, output_tokens > 0];

// The SDK, with its own retries.
function openai(apiKey) {
  const client = new OpenAI({ baseURL, apiKey });
  const create = (more, options) => client.chat.completions.create({ messages: MESSAGES, ...more }, options);
  return {
    models: async () => {
      const ids = (await all(client.models.list())).map((model) => model.id);
      return ids.filter((id) => id.startsWith("test:")).sort();
    },
    model: async () => (await client.models.retrieve("test:sh")).object,
    whole: async () => (await create({ model: "test:sh" })).choices[0].message.content,
    metered: async () => usage((await create({ model: "test:model" })).usage),
    streamed: async () => {
      const chunks = await all(create({ model: "test:model", stream: true, stream_options: { include_usage: true } }));
      const choices = chunks.flatMap((chunk) => chunk.choices);
      const text = choices.map((choice) => choice.delta.content ?? "").join("");
      const ends = choices.map((choice) => choice.finish_reason).filter(Boolean);
      return [text !== "", ends, usage(chunks.at(-1).usage)];
    },
    unknown: () => outcome(() => create({ model: "test:none" })),
    invalid: () => outcome(() => create({ model: "test:sh", messages: [] })),
    failed: () => outcome(() => create({ model: "test:fails" })),
    failed_streamed: () => outcome(() => all(create({ model: "test:fails", stream: true }))),
    repeated: async () => {
      const headers = { "Idempotency-Key": "node" };
      const once = await create({ model: "test:sh" }, { headers });
      const again = await create({ model: "test:sh" }, { headers });
      return new Set([once.id, again.id]).size;
    },
    cancelled: async () => {
      for await (const chunk of await create({ model: "test:long", stream: true })) {
        return chunk.id.replace("chatcmpl-", ""); // this ends the request
      }
    },
    unauthenticated: () => outcome(() => openai("wrong").models()),
  };
}

// LangChain's client of OpenAI's API. It ignores the server's wish about retries, so it is told to make none.
function langchain() {
  const own = { apiKey: TOKEN, maxRetries: 0, configuration: { baseURL } };
  const chat = (model, more) => new ChatOpenAI({ model, ...own, ...more });
  return {
    whole: async () => (await chat("test:sh").invoke([["system", "Be short."], ["human", "one"]])).content,
    metered: async () => used((await chat("test:model").invoke("one")).usage_metadata),
    streamed: async () => {
      const [first, ...rest] = await all(chat("test:model").stream("one"));
      const whole = rest.reduce((sum, chunk) => sum.concat(chunk), first);
      return [whole.content !== "", [whole.response_metadata.finish_reason], used(whole.usage_metadata)];
    },
    unknown: () => outcome(() => chat("test:none").invoke("one")),
    failed: () => outcome(() => chat("test:fails").invoke("one")),
    // With retries, which are the default, a failed run is ordered again.
    retried: () => outcome(() => chat("test:fails", { maxRetries: 1 }).invoke("one")),
    cancelled: async () => {
      const leaving = new AbortController();
      const stream = await chat("test:long").stream("one", { signal: leaving.signal });
      const { value } = await stream[Symbol.asyncIterator]().next();
      leaving.abort(); // a `break` would wait for the next chunk
      return value.id.replace("chatcmpl-", "");
    },
    unauthenticated: () => outcome(() => chat("test:sh", { apiKey: "wrong" }).invoke("one")),
  };
}

for (const [client, cases] of Object.entries({ openai: openai(TOKEN), langchain: langchain() })) {
  for (const [name, call] of Object.entries(cases)) {
    console.log(JSON.stringify({ client, case: name, value: await call() }));
  }
}
process.exit(0); // LangChain leaves timers
