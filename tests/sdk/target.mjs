// Connects the official SDKs to one server of a model API, and extracts the values of answers that must be equal for
// all servers. conform.mjs defines the calls.
import { createRequire } from "node:module";
import { join } from "node:path";

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: run this with scripts/sdks.sh node");
const installed = createRequire(join(process.env.PACKAGES, "package.json"));
const { OpenAI } = installed("openai");
const { Anthropic } = installed("@anthropic-ai/sdk");
const { Agent, fetch } = installed("undici");

// Fields that differ from answer to answer, with any server.
const NEVER_EQUAL = new Set([
  ..."call_id completed_at created created_at encrypted_content id item_id obfuscation system_fingerprint".split(" "),
  "_request_id",
]);

// A server: a base URL, a key, and for a run's own listener its socket.
export class Target {
  constructor({ name, url, key, socket }) {
    this.name = name;
    const dispatcher = new Agent(socket ? { connect: { socketPath: socket } } : {});
    const counted = async (...request) => {
      this.calls += 1;
      const [input, init] = request;
      const answer = await fetch(input, { ...init, dispatcher });
      this.ids.push(answer.headers.get("x-litellm-call-id"));
      return answer;
    };
    // On a unix socket, the path of a URL is used and its host is ignored.
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

// Returns a value as JSON, with only the types of fields that are never equal. `"usage": null` equals no usage. The
// price is left out: LiteLLM knows it only some time after a model's first call.
export function comparable(value) {
  const kept = (name, inner) => {
    if (name === "cost" || (name === "usage" && inner === null)) return undefined;
    return NEVER_EQUAL.has(name) && typeof inner !== "object" ? typeof inner : inner;
  };
  return JSON.parse(JSON.stringify(value ?? null, kept));
}

// Returns the part of an error that programs use: its class, status, type and code. Messages are for people.
export function failure(error) {
  const { status = null, type = null, code = null } = error;
  return { class: error.constructor.name, status, type, code };
}

// Returns the last usage in `value`, or null.
export function tokens(value) {
  if (typeof value !== "object" || value === null) return null;
  const own = typeof value.usage === "object" ? value.usage : null;
  return Object.values(value).reduce((last, inner) => tokens(inner) ?? last, own);
}
