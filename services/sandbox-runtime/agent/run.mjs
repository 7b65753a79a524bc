// Answers one conversation with one streamed call: the smallest agent. Always prints one JSON envelope on stdout (README.md
// shows it). Has no tools and does not retry: the caller decides what to do about a failure.
//
// usage: node run.mjs [MESSAGES_FILE]
import { readFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";

const MESSAGES_FILE = "/workspace/.cogni/messages.json";
const MAX_ERROR_BODY = 64 * 1024; // bytes read from an HTTP error's body
const MAX_ERROR_MESSAGE = 2000; // characters

class AgentError extends Error {
  constructor(code, message) {
    super(message.length > MAX_ERROR_MESSAGE ? `${message.slice(0, MAX_ERROR_MESSAGE)}…` : message);
    this.code = code;
  }
}

const llmError = (message) => new AgentError("llm_error", message);

function readConfig(env) {
  const { OPENAI_API_BASE: base, COGNI_MODEL: model } = env;
  if (!base) throw new AgentError("config_error", "OPENAI_API_BASE is not set");
  if (!model) throw new AgentError("config_error", "COGNI_MODEL is not set");
  const url = `${base.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1/chat/completions`;
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new AgentError("config_error", `OPENAI_API_BASE is not an HTTP address: ${base}`);
  }
  return { url: new URL(url), model };
}

async function readMessages(file) {
  const inputError = (why) => new AgentError("input_error", `${file}: ${why}`);
  const text = await readFile(file, "utf8").catch((error) => {
    throw inputError(error.code === "ENOENT" ? "no such file" : error.message);
  });
  let messages;
  try {
    messages = JSON.parse(text);
  } catch (error) {
    throw inputError(`not JSON: ${error.message}`);
  }
  if (!Array.isArray(messages) || messages.length === 0) throw inputError("not a list of messages, or an empty one");
  const bad = messages.findIndex((message) => typeof message?.role !== "string");
  if (bad >= 0) throw inputError(`message ${bad} has no role`);
  return messages;
}

// Sends the request with node:http. `fetch` gives up after 300 s without a byte, and models are often silent for longer.
function post(url, body) {
  const client = url.protocol === "https:" ? https : http;
  const headers = { "content-type": "application/json", accept: "text/event-stream", connection: "close" };
  return new Promise((resolve, reject) => {
    const request = client.request(url, { method: "POST", headers }, resolve);
    request.on("error", (error) => reject(llmError(`no answer from ${url.origin}: ${error.code ?? error.message}`)));
    request.end(JSON.stringify(body));
  });
}

// Builds an error from the status and the server's message.
async function httpError(response) {
  let size = 0;
  const chunks = [];
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_ERROR_BODY) break;
    }
  } catch {
    // The status alone is enough; the part of the body that arrived is used below.
  }
  const text = Buffer.concat(chunks).toString("utf8");
  let reason = text.trim();
  try {
    const { error } = JSON.parse(text);
    reason = error?.message ?? (typeof error === "string" ? error : reason);
  } catch {
    // Not JSON: the text itself is the reason.
  }
  return llmError(`HTTP ${response.statusCode}: ${reason || response.statusMessage}`);
}

// Yields the data of each server-sent event. A chunk may end anywhere, even inside a character or CRLF. The end of the
// stream also ends the last event; the caller decides whether the answer was complete.
async function* events(response) {
  const decoder = new TextDecoder();
  let buffer = "";
  let data = [];
  for await (const chunk of withEnd(response)) {
    buffer += chunk === END ? `${decoder.decode()}\n\n` : decoder.decode(chunk, { stream: true });
    const held = buffer.endsWith("\r") ? "\r" : ""; // perhaps the first half of CRLF
    const lines = buffer.slice(0, buffer.length - held.length).split(/\r\n|\n|\r/);
    buffer = lines.pop() + held;
    for (const line of lines) {
      if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      } else if (/^data(:|$)/.test(line)) {
        data.push(line.slice(5).replace(/^ /, ""));
      } // anything else is a comment or a field that this API does not use
    }
  }
}

const END = Symbol("end");

async function* withEnd(response) {
  yield* response;
  yield END;
}

// Collects the answer in `answer.text`. The caller keeps the partial text if this throws.
async function readAnswer(response, answer) {
  let finished = false;
  try {
    for await (const data of events(response)) {
      if (data === "[DONE]") return;
      const event = parseEvent(data);
      if (event.error) throw llmError(event.error.message ?? JSON.stringify(event.error));
      const choice = event.choices?.[0]; // the event with the usage has none
      if (typeof choice?.delta?.content === "string") answer.text += choice.delta.content;
      if (choice?.finish_reason) finished = true;
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw llmError(`cut: the connection broke in the middle of the answer (${error.code ?? error.message})`);
  }
  if (!finished) throw llmError("cut: the stream ended before the answer did");
}

function parseEvent(data) {
  try {
    return JSON.parse(data) ?? {};
  } catch {
    throw llmError(`cut or garbled: not JSON in the stream: ${data.slice(0, 200)}`);
  }
}

async function run(file, answer) {
  const { url, model } = readConfig(process.env);
  const messages = await readMessages(file);
  const response = await post(url, { model, messages, stream: true, stream_options: { include_usage: true } });
  try {
    if (response.statusCode !== 200) throw await httpError(response);
    const type = response.headers["content-type"] ?? "none";
    if (!type.startsWith("text/event-stream")) throw llmError(`expected an event stream, got content type ${type}`);
    await readAnswer(response, answer);
  } finally {
    response.destroy(); // an open connection keeps the process alive
  }
}

const started = performance.now();
const answer = { text: "" };
let failure = null;
try {
  await run(process.argv[2] ?? MESSAGES_FILE, answer);
} catch (error) {
  failure = { code: error instanceof AgentError ? error.code : "llm_error", message: error.message };
  process.exitCode = 1;
}
const payloads = failure && !answer.text ? [] : [{ text: answer.text }];
const durationMs = Math.round(performance.now() - started);
process.stdout.write(`${JSON.stringify({ payloads, meta: { durationMs, error: failure } })}\n`);
