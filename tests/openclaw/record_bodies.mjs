// Records the requests that the real OpenClaw sends to a model, in each of its three APIs: a turn with a tool, then a turn
// with thinking and an image. Tests send the recordings in tests/openclaw/bodies through Sluicegate.
//
// usage: scripts/openclaw.sh node tests/openclaw/record_bodies.mjs tests/openclaw/bodies/VERSION
//
// OPENCLAW_PACKAGE may name the folder of another version's package. Truncates texts: they decide no check. Takes a minute or
// two. OPENCLAW_STDERR=1 shows OpenClaw's stderr.
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { config, turn } from "./command_line.mjs";

const APIS = ["openai-completions", "openai-responses", "anthropic-messages"];
const MAX_TEXT_CHARS = 120;
const TURN_SECONDS = 120;
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
// Headers of the connection, not of the call.
const HEADERS_LEFT_OUT = ["host", "connection", "content-length", "transfer-encoding"];

const target = process.argv[2];

// The scripted upstream interprets the models' names.
const MODELS = [{ id: "fake" }, { id: "fake-words5", reasoning: true, input: ["text", "image"] }];
// Denies the tools that the specification forbids for gateways.
const TOOLS = {
  elevated: { enabled: false },
  deny: ["group:web", "browser", "cron", "gateway", "nodes", "sessions_send", "sessions_spawn", "message"],
};

// Builds answers: one that thinks and calls a tool, and a short text after the tool's result.
const answers = {
  "openai-completions": (call) => {
    const chunk = (delta, finish_reason = null) => ({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "fake",
      choices: [{ index: 0, delta, finish_reason }],
    });
    const used = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
    const usage = { ...chunk({}), choices: [], usage: used };
    const tool = call && { index: 0, id: "call_1", type: "function", function: { name: "read", arguments: call } };
    const events = call
      ? [chunk({ role: "assistant", reasoning_content: "Hm." }), chunk({ tool_calls: [tool] }), chunk({}, "tool_calls")]
      : [chunk({ role: "assistant", content: "Done." }), chunk({}, "stop")];
    return [...events, usage].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + "data: [DONE]\n\n";
  },
  "openai-responses": (call) => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "c2VjcmV0" };
    const tool = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read", arguments: call };
    const content = [{ type: "output_text", text: "Done.", annotations: [] }];
    const said = { type: "message", id: "msg_1", role: "assistant", content };
    const output = (call ? [reasoning, tool] : [said]).map((item) => ({ ...item, status: "completed" }));
    const usage = { input_tokens: 9, output_tokens: 3, total_tokens: 12 };
    const about = { id: "resp_1", object: "response", created_at: 1, model: "fake", usage };
    const response = (status, output) => ({ ...about, status, output });
    const events = [{ type: "response.created", response: response("in_progress", []) }];
    output.forEach((item, output_index) => {
      events.push({ type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } });
      events.push({ type: "response.output_item.done", output_index, item });
    });
    events.push({ type: "response.completed", response: response("completed", output) });
    const numbered = events.map((event, sequence_number) => ({ ...event, sequence_number }));
    return numbered.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  },
  "anthropic-messages": (call) => {
    const usage = { input_tokens: 9, output_tokens: 3 };
    const said = { id: "msg_1", type: "message", role: "assistant", content: [] };
    const message = { ...said, model: "fake", stop_reason: null, usage };
    const block = (index, content_block, ...deltas) => [
      { type: "content_block_start", index, content_block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ];
    const thoughts = [
      { type: "thinking_delta", thinking: "Hm." },
      { type: "signature_delta", signature: "c2ln" },
    ];
    const use = { type: "tool_use", id: "toolu_1", name: "read", input: {} };
    const blocks = call
      ? [
          ...block(0, { type: "thinking", thinking: "", signature: "" }, ...thoughts),
          ...block(1, use, { type: "input_json_delta", partial_json: call }),
        ]
      : block(0, { type: "text", text: "" }, { type: "text_delta", text: "Done." });
    const stop_reason = call ? "tool_use" : "end_turn";
    const events = [
      { type: "message_start", message },
      ...blocks,
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  },
};

// Truncates long texts and replaces the folder's path. Media are unchanged, because tests check them.
function truncate(value, folder) {
  if (Array.isArray(value)) return value.map((one) => truncate(one, folder));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, truncate(inner, folder)]));
  }
  if (typeof value !== "string" || value.includes(DOT)) return value;
  const text = value.replaceAll(folder, "/home/node");
  return text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)} …` : text;
}

// Runs one turn and fails if OpenClaw does.
async function runTurn(folder, message, ...options) {
  const limits = { seconds: TURN_SECONDS, wall: 2 * TURN_SECONDS };
  const { code, output } = await turn({ folder, session: "recorded", message, options, ...limits });
  if (code !== 0) throw new Error(`OpenClaw ended with ${code}: ${output}`);
}

// Records the calls of both turns for one API.
async function record(api) {
  const folder = mkdtempSync(join(tmpdir(), "sw-openclaw-"));
  const calls = [];
  let next;
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    const headers = Object.entries(request.headers).filter(([name]) => !HEADERS_LEFT_OUT.includes(name));
    calls.push({ path: request.url, headers: Object.fromEntries(headers), body: truncate(body, folder) });
    response.writeHead(200, { "content-type": "text/event-stream" }).end(answers[api](next));
    next = undefined;
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const configure = (primary) => {
    const options = { folder, port: server.address().port, api, models: MODELS, primary, tools: TOOLS };
    writeFileSync(join(folder, "openclaw.json"), JSON.stringify(config({ ...options, seconds: TURN_SECONDS })));
  };
  try {
    mkdirSync(join(folder, "workspace"));
    writeFileSync(join(folder, "workspace", "AGENTS.md"), "You are a sandboxed coding agent.\n");
    writeFileSync(join(folder, "workspace", "dot.png"), Buffer.from(DOT, "base64"));
    configure("fake");
    next = JSON.stringify({ path: "AGENTS.md" });
    await runTurn(folder, "Read AGENTS.md");
    configure("fake-words5");
    next = JSON.stringify({ path: "dot.png" });
    await runTurn(folder, "Look at dot.png", "--thinking", "low");
  } finally {
    rmSync(folder, { recursive: true, force: true });
    server.closeAllConnections();
    server.close();
  }
  return calls;
}

mkdirSync(target, { recursive: true });
for (const api of APIS) {
  const calls = await record(api);
  writeFileSync(join(target, `${api}.json`), `[\n${calls.map((call) => JSON.stringify(call)).join(",\n")}\n]\n`);
  console.log(`${api}: ${calls.length} calls`);
}
