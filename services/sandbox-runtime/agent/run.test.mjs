// Tests run.mjs as a process: with a messages file, a server, and one envelope on stdout.
// usage: node --test services/sandbox-runtime/agent/run.test.mjs
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const AGENT = fileURLToPath(new URL("run.mjs", import.meta.url));
const MESSAGES = [{ role: "user", content: "Grüße" }];
const USAGE = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })}\n\n`;
const DONE = "data: [DONE]\n\n";
const text = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const finish = () => `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`;

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "run-test-"));
});
after(() => rm(folder, { recursive: true }));

/** Runs the agent with `env` and the content of the messages file (null: no file). */
async function runAgent(env, messages = JSON.stringify(MESSAGES)) {
  const file = join(folder, `${Math.random()}.json`);
  if (messages !== null) await writeFile(file, messages);
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, ...env }, timeout: 10_000 };
    execFile(process.execPath, [AGENT, file], options, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, envelope: JSON.parse(stdout), lines: stdout.trimEnd().split("\n"), stderr });
    });
  });
}

/** Runs the agent against a server that answers with `respond(response, request)`. */
async function askServer(respond, { suffix = "" } = {}) {
  const seen = {};
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    Object.assign(seen, { method: request.method, path: request.url, body: JSON.parse(body) });
    await respond(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${server.address().port}${suffix}`;
  const result = await runAgent({ OPENAI_API_BASE: base, COGNI_MODEL: "fake" });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  return { ...result, seen };
}

/** Answers with these chunks as an event stream, one write each, then ends cleanly. */
const stream = (...chunks) => async (response) => {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const chunk of chunks) {
    response.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 2)); // keeps the writes separate
  }
  response.end();
};

function assertAnswer({ code, envelope, lines, stderr }, expected) {
  assert.deepEqual(envelope.payloads, [{ text: expected }]);
  assert.equal(envelope.meta.error, null);
  assert.equal(typeof envelope.meta.durationMs, "number");
  assert.deepEqual({ code, lines: lines.length, stderr }, { code: 0, lines: 1, stderr: "" });
}

function assertFailure({ code, envelope, lines }, errorCode, message, partial) {
  assert.equal(envelope.meta.error?.code, errorCode);
  assert.match(envelope.meta.error.message, message);
  assert.deepEqual(envelope.payloads, partial === undefined ? [] : [{ text: partial }]);
  assert.deepEqual({ code, lines: lines.length }, { code: 1, lines: 1 });
}

test("asks for a stream with usage and prints the answer", async () => {
  const result = await askServer(stream(text("Hello "), text("world"), finish(), USAGE, DONE));
  assertAnswer(result, "Hello world");
  assert.deepEqual(result.seen, {
    method: "POST",
    path: "/v1/chat/completions",
    body: { model: "fake", messages: MESSAGES, stream: true, stream_options: { include_usage: true } },
  });
});

for (const suffix of ["/v1", "/v1/", "/"]) {
  test(`accepts a base address that ends in ${suffix}`, async () => {
    const result = await askServer(stream(text("x"), DONE), { suffix });
    assert.equal(result.seen.path, "/v1/chat/completions");
  });
}

test("reads a stream that arrives byte by byte, with CRLF, comments and other fields", async () => {
  const whole = `: hello\r\n\r\nevent: message\r\nid: 1\r\n${text("Grüße 🌍").replaceAll("\n", "\r\n")}: ping\r\n\r\n${DONE}`;
  const bytes = [...Buffer.from(whole)].map((byte) => Buffer.from([byte]));
  assertAnswer(await askServer(stream(...bytes)), "Grüße 🌍");
});

test("joins the data lines of one event", async () => {
  assertAnswer(await askServer(stream('data: {"choices":[{"delta":\ndata:{"content":"a"}}]}\n\n', DONE)), "a");
});

test("accepts an end without [DONE] once the answer is finished", async () => {
  assertAnswer(await askServer(stream(text("a"), finish())), "a");
});

test("an empty answer is an answer", async () => {
  assertAnswer(await askServer(stream(finish(), DONE)), "");
});

test("does not wait for a connection that stays open after [DONE]", async () => {
  const result = await askServer((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text("a") + DONE);
  });
  assertAnswer(result, "a");
});

test("an error in mid-stream fails and keeps the text before it", async () => {
  const event = `data: ${JSON.stringify({ error: { message: "overloaded", code: "500" } })}\n\n`;
  assertFailure(await askServer(stream(text("part"), event)), "llm_error", /^overloaded$/, "part");
});

test("a stream that just ends is cut", async () => {
  assertFailure(await askServer(stream(text("part"))), "llm_error", /^cut/, "part");
  assertFailure(await askServer(stream(text("part"), text("lost").slice(0, 20))), "llm_error", /^cut/, "part");
});

test("a broken connection is cut, even after the model finished", async () => {
  const result = await askServer(async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text("part") + finish());
    setTimeout(() => response.destroy(), 50);
  });
  assertFailure(result, "llm_error", /^cut.*ECONNRESET/, "part");
});

const answerWith = (status, type, body) => (response) => {
  response.writeHead(status, { "content-type": type });
  response.end(body);
};

test("an HTTP error carries the status and the server's message, bounded", async () => {
  const body = (message) => JSON.stringify({ error: { message, code: "budget" } });
  const refused = await askServer(answerWith(400, "application/json", body("budget used up")));
  assertFailure(refused, "llm_error", /^HTTP 400: budget used up$/);
  const long = await askServer(answerWith(502, "application/json", body("x".repeat(50_000))));
  assertFailure(long, "llm_error", /^HTTP 502: x+…$/);
  assert.ok(long.envelope.meta.error.message.length < 2100);
  assertFailure(await askServer(answerWith(503, "text/plain", "")), "llm_error", /^HTTP 503: Service Unavailable$/);
});

test("an answer that is not an event stream is refused", async () => {
  assertFailure(await askServer(answerWith(200, "text/html", "<p>hi")), "llm_error", /content type text\/html/);
});

test("a server that is not there", async () => {
  const result = await runAgent({ OPENAI_API_BASE: "http://127.0.0.1:9", COGNI_MODEL: "fake" });
  assertFailure(result, "llm_error", /ECONNREFUSED/);
});

test("missing configuration", async () => {
  assertFailure(await runAgent({ COGNI_MODEL: "fake" }), "config_error", /OPENAI_API_BASE/);
  assertFailure(await runAgent({ OPENAI_API_BASE: "http://127.0.0.1:9" }), "config_error", /COGNI_MODEL/);
  assertFailure(await runAgent({ OPENAI_API_BASE: "unix:/x", COGNI_MODEL: "fake" }), "config_error", /HTTP address/);
});

for (const [what, content, message] of [
  ["no messages file", null, /no such file/],
  ["messages that are not JSON", "{", /not JSON/],
  ["messages that are not a list", "{}", /not a list/],
  ["an empty list of messages", "[]", /empty/],
  ["a message without a role", '[{"role":"user","content":"a"},{"content":"b"}]', /message 1 has no role/],
]) {
  test(what, async () => {
    const result = await runAgent({ OPENAI_API_BASE: "http://127.0.0.1:9", COGNI_MODEL: "fake" }, content);
    assertFailure(result, "input_error", message);
  });
}
