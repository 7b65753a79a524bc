// Tests the agent with a real OpenClaw without `agent exec`, against a scripted model.
// usage: make test-openclaw VERSION=2026.2.6-3
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

import { MAX_ARGUMENT_BYTES } from "./message.mjs";

const AGENT = fileURLToPath(new URL("run.mjs", import.meta.url));

// The model's next responses, and the requests it received.
let script = [];
let requests = [];

function chunk(delta, finish_reason = null) {
  const head = { id: "answer", object: "chat.completion.chunk", created: 0, model: "m" };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
}

const say = (content) => (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`${chunk({ role: "assistant", content })}${chunk({}, "stop")}data: [DONE]\n\n`);
};

const call = (name, input) => (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const called = { index: 0, id: "call_1", type: "function", function: { name, arguments: JSON.stringify(input) } };
  response.end(`${chunk({ role: "assistant", tool_calls: [called] })}${chunk({}, "tool_calls")}data: [DONE]\n\n`);
};

const refuse = (status) => (response) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message: "Not for you.", type: "refused", code: null } }));
};

async function run(steps, question) {
  [script, requests] = [steps, []];
  const model = http.createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece)).on("end", () => {
      requests.push(Buffer.concat(pieces).toString("utf8"));
      (script.shift() ?? refuse(500))(response);
    });
  });
  await new Promise((resolve) => model.listen(0, "127.0.0.1", resolve));
  const workspace = mkdtempSync(path.join(tmpdir(), "older-"));
  mkdirSync(path.join(workspace, ".cogni"));
  writeFileSync(path.join(workspace, ".cogni", "messages.json"), JSON.stringify([{ role: "user", content: question }]));
  const env = { ...process.env, SANDBOX_WORKSPACE: workspace, COGNI_MODEL: "m" };
  env.OPENAI_API_BASE = `http://127.0.0.1:${model.address().port}`;
  const result = await new Promise((resolve) => {
    const options = { env, maxBuffer: 64 << 20 };
    execFile(process.execPath, [AGENT], options, (error, stdout) => resolve({ exit: error?.code ?? 0, stdout }));
  });
  model.close();
  model.closeAllConnections();
  rmSync(workspace, { recursive: true });
  const { payloads, meta } = JSON.parse(result.stdout);
  return [result.exit, meta.error?.code ?? null, payloads.map(({ text }) => text).join()];
}

test("the installed version is the older one", () => {
  const { version } = JSON.parse(readFileSync(path.join(process.env.OPENCLAW_PACKAGE, "package.json"), "utf8"));
  assert.equal(version, "2026.2.6-3");
});

test("uses a tool and answers", async () => {
  const steps = [call("exec", { command: "echo $((40 + 2))" }), say("It is 42.")];
  assert.deepEqual(await run(steps, "--help is what I ask; and $(what) `is` it?"), [0, null, "It is 42."]);
  assert.ok(requests[0].includes("--help is what I ask; and $(what) `is` it?"), "neither a shell nor an option parser read the message");
  assert.ok(requests[1].includes('"42'), "the tool's output");
});

test("a reported success without an answer is a failure", async () => {
  assert.deepEqual(await run([refuse(401)], "Hi"), [1, "model_error", ""]);
  assert.equal(requests.length, 1);
  assert.deepEqual(await run([say("")], "Hi"), [1, "no_answer", ""]);
});

test("a message at the argument limit is answered, and a longer one is refused before any call", async () => {
  const longest = "x".repeat(MAX_ARGUMENT_BYTES - "--message=".length);
  assert.deepEqual(await run([say("Long.")], longest), [0, null, "Long."]);
  assert.ok(requests[0].includes(longest));
  assert.deepEqual(await run([say("Longer.")], `${longest}x`), [1, "input_error", ""]);
  assert.equal(requests.length, 0);
});
