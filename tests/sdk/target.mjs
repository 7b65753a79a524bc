// One place where a model API is served, the official SDKs' clients for it, and what of their answers must be equal
// wherever they come from. Which calls are made is said in conform.mjs.
import { createRequire } from "node:module";
import { join } from "node:path";

if (!process.env.SDKS) throw new Error("SDKS is not set: run this with scripts/sdks.sh node");
const installed = createRequire(join(process.env.SDKS, "package.json"));
const { OpenAI } = installed("openai");
const { Anthropic } = installed("@anthropic-ai/sdk");
const { Agent, fetch } = installed("undici");

// Differ from answer to answer, whoever gives it.
const NEVER_EQUAL = new Set([
  ..."call_id completed_at created created_at encrypted_content id item_id obfuscation system_fingerprint".split(" "),
  "_request_id",
]);

// A base URL, a key, and for a run's own listener its socket.
export class Target {
  constructor({ name, url, key, socket }) {
    this.name = name;
    const dispatcher = new Agent(socket ? { connect: { socketPath: socket } } : {});
    const counted = async (...asked) => {
      this.calls += 1;
      const [input, init] = asked;
      const answer = await fetch(input, { ...init, dispatcher });
      this.ids.push(answer.headers.get("x-litellm-call-id"));
      return answer;
    };
    // The path of an URL on a unix socket counts, its host does not.
    this.openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch: counted });
    this.anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, fetch: counted });
    this.begin();
  }

  // Forgets the calls of the last case.
  begin() {
    this.calls = 0;
    this.ids = [];
  }
}

// As JSON has it, without what is never equal: only that it is there. `"usage": null` says what no usage says; LiteLLM
// knows a price only from some time after a model's first call.
export function comparable(value) {
  const told = (name, inner) => {
    if (name === "cost" || (name === "usage" && inner === null)) return undefined;
    return NEVER_EQUAL.has(name) && typeof inner !== "object" ? typeof inner : inner;
  };
  return JSON.parse(JSON.stringify(value ?? null, told));
}

// What a program can tell of an error: its class, and what classes are sorted by. Messages are words for people.
export function failure(error) {
  const { status = null, type = null, code = null } = error;
  return { class: error.constructor.name, status, type, code };
}

// The last usage in `value`; null if none is told.
export function tokens(value) {
  if (typeof value !== "object" || value === null) return null;
  const own = typeof value.usage === "object" ? value.usage : null;
  return Object.values(value).reduce((told, inner) => tokens(inner) ?? told, own);
}
