// Feeds recorded output of each agent to its adapter, and checks the events. Each `recorded/` has lines of the pinned version
// against the scripted upstream, without ids of sessions.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { promisify } from "node:util";

import aider from "./aider/adapter.mjs";
import claudeCode from "./claude-code/adapter.mjs";
import codex from "./codex/adapter.mjs";
import opencode from "./opencode/adapter.mjs";
import qwenCode from "./qwen-code/adapter.mjs";
import { readInstructions } from "./lib/behaviour.mjs";
import { buildPrompt } from "./lib/conversation.mjs";
import { AgentError } from "./lib/errors.mjs";
import * as events from "./lib/events.mjs";
import { describe, readHostTools } from "./lib/host_tools.mjs";
import { captureTail, splitLines } from "./lib/lines.mjs";
import { runAgent } from "./lib/run.mjs";
import { removeTree } from "./lib/state.mjs";

const CLOCK = {
  name: "core__get_current_time",
  description: "Returns the time.",
  inputSchema: { type: "object", properties: {}, additionalProperties: false },
};
const SENTENCE = "Hello from the scripted upstream, it is a lovely day.";

// Returns the events, the answer and the error of a recording.
function replay(adapter, scenario) {
  const file = new URL(`./${adapter.name}/recorded/${scenario}.jsonl`, import.meta.url);
  const translator = adapter.translate({ state: "/nonexistent" });
  const found = readFileSync(file, "utf8").trim().split("\n").flatMap((line) => translator.line(line));
  return { found, ...translator.end() };
}

for (const adapter of [claudeCode, codex, opencode, qwenCode]) {
  test(`${adapter.name}: a tool loop has a call, its result and an answer`, () => {
    const { found, answer, error } = replay(adapter, "tools");
    assert.equal(error ?? null, null);
    assert.equal(answer, "Done it.");
    const [call, result] = found;
    assert.deepEqual([call.type, result.type, result.id], ["tool_call", "tool_result", call.id]);
    assert.match(JSON.stringify(call.arguments), /echo hi/);
    assert.match(result.result, /hi/);
    assert.equal(found.filter(({ type }) => type === "text").map(({ text }) => text).join(""), "Done it.");
    const used = found.filter(({ type }) => type === "usage");
    assert.ok(used.length > 0 && used.every(({ input_tokens: input }) => input > 0), JSON.stringify(used));
  });

  test(`${adapter.name}: a refusal is the provider's sentence`, () => {
    const { found, error } = replay(adapter, "refused");
    assert.equal(error.code, "model_error");
    assert.match(error.message, /The script wants this status\./);
    assert.deepEqual(found.filter(({ type }) => type === "text"), []);
  });
}

for (const adapter of [claudeCode, codex, qwenCode]) {
  test(`${adapter.name}: a cut is a model error`, () => assert.equal(replay(adapter, "cut").error.code, "model_error"));
}

for (const adapter of [claudeCode, codex, opencode]) {
  test(`${adapter.name}: an empty answer is not a failure of the model`, () => {
    const { answer, error } = replay(adapter, "empty");
    assert.equal(error ?? null, null);
    assert.equal(answer ?? "", "");
  });
}

test("aider: its logs hold the answer and the usage", () => {
  const state = mkdtempSync(path.join(tmpdir(), "aider-"));
  const call = "TO LLM 2026-11-23T16:29:05\nUSER Hello\nLLM RESPONSE 2026-11-23T16:29:05\n";
  writeFileSync(path.join(state, "calls.txt"), `${call}ASSISTANT Earlier.\n${call}ASSISTANT ${SENTENCE}\nASSISTANT\nASSISTANT Bye.\n`);
  const sent = { event: "message_send", properties: { prompt_tokens: 592, completion_tokens: 12 } };
  writeFileSync(path.join(state, "events.jsonl"), `{"event": "launched", "properties": {}}\n${JSON.stringify(sent)}\n`);
  const translator = aider.translate({ state });
  const edits = ["Aider v0.86.2", "Applied edit to a.txt"].flatMap((line) => translator.line(line));
  assert.deepEqual(edits, [events.toolCall("edit-1", "edit", { path: "a.txt" }), events.toolResult("edit-1", "applied")]);
  assert.deepEqual(translator.last(), [events.text(`${SENTENCE}\n\nBye.`), events.usage(592, 12, 0)]);
  assert.equal(translator.end().answer, `${SENTENCE}\n\nBye.`);
  rmSync(state, { recursive: true });
});

test("aider: a piece of an answer is none after a failure", () => {
  const state = mkdtempSync(path.join(tmpdir(), "aider-"));
  writeFileSync(path.join(state, "calls.txt"), "LLM RESPONSE 2026-11-23T16:29:05\nASSISTANT Hello from\n");
  const translator = aider.translate({ state });
  const started = '{"event": "message_send_starting", "properties": {}}\n';
  writeFileSync(path.join(state, "events.jsonl"), started);
  const failure = "litellm.APIConnectionError: APIConnectionError: OpenAIException - [Errno 104] Connection reset by peer";
  translator.line(`Hello from${failure}`);
  const { error } = translator.end();
  assert.deepEqual([translator.last(), error.code, error.message], [[], "model_error", failure]);
  const ended = '{"event": "message_send", "properties": {"prompt_tokens": 5, "completion_tokens": 2}}\n';
  writeFileSync(path.join(state, "events.jsonl"), started + ended);
  assert.equal(translator.end().answer, "Hello from", "control: a later attempt was whole");
  rmSync(state, { recursive: true });
});

// Returns how an adapter starts its agent for a run in `workspace` with the given working directory.
function commandOf(adapter, workspace, cwd, limits = {}, more = []) {
  const state = path.join(workspace, ".state");
  const run = { model: "m", root: "http://localhost:8080", v1: "http://localhost:8080/v1", state, home: `${state}/home`, agentRoot: "/opt/agent" };
  return adapter.command({ ...run, env: {}, prompt: "Hello", hostTools: null, ...limits, ...readInstructions(workspace, cwd, more) });
}

test("each agent reads of the host's tools if its run may call any", () => {
  const workspace = mkdtempSync(path.join(tmpdir(), "tools-"));
  const text = path.join(workspace, "host-tools.md");
  writeFileSync(text, describe([CLOCK], (name) => name));
  const hostTools = "http://localhost:8080/mcp";
  for (const adapter of [aider, claudeCode, codex, opencode, qwenCode]) {
    const started = (...given) => {
      const { args, files } = commandOf(adapter, workspace, workspace, ...given);
      return JSON.stringify([args, files]);
    };
    const granted = started({ hostTools }, [text]);
    assert.match(granted, /cogni-tool exec|host-tools\.md/, adapter.name);
    assert.equal(granted.includes(hostTools), adapter !== aider, `${adapter.name}: the server of MCP`);
    assert.doesNotMatch(started(), /cogni-tool exec|host-tools\.md|8080\/mcp/, `${adapter.name}: control`);
  }
  rmSync(workspace, { recursive: true });
});

test("the text about host tools has names, schemas and examples", () => {
  const schema = {
    type: "object",
    required: ["number", "labels", "body", "state"],
    properties: {
      number: { type: "integer", minimum: 7 },
      labels: { type: "array", items: { type: "string" } },
      body: { type: "string", default: "it's done" },
      state: { enum: ["open", "closed"] },
      more: { type: "boolean" },
    },
  };
  const label = { name: "github__label", description: "Sets labels.\n", inputSchema: schema };
  const huge = { name: "huge", inputSchema: { type: "object", description: "x".repeat(10_000) } };
  const text = describe([CLOCK, label, huge, { name: "unlisted" }], (name) => `mcp__host__${name}`);
  assert.match(text, /^## mcp__host__core__get_current_time\n\nReturns the time\.$/m);
  assert.ok(text.includes(JSON.stringify(schema)), text);
  const example = `{"number":7,"labels":["text"],"body":"it'\\''s done","state":"open"}`;
  assert.ok(text.includes(`cogni-tool exec github__label '${example}'`), text);
  assert.ok(text.length < 4096 && /cogni-tool exec huge '\{\}'/.test(text), "a long schema is left out");
  assert.match(text, /cogni-tool exec unlisted '\{\}'/);
  assert.match(text, /MCP server/);
  assert.doesNotMatch(describe([CLOCK]), /MCP/, "an agent without MCP has its shell alone");
});

test("a list of host tools that cannot be read leaves their names", async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "list-"));
  const program = (body) => writeFileSync(path.join(directory, "cogni-tool"), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  const previous = process.env.PATH;
  process.env.PATH = `${directory}:${previous}`;
  try {
    const env = { COGNI_HOST_TOOLS: "a__b,c__d", COGNI_GATEWAY_URL: "http://gateway" };
    program(`echo '${JSON.stringify([CLOCK])}'`);
    assert.deepEqual(await readHostTools(env, "http://root"), { url: "http://gateway/mcp", tools: [CLOCK] });
    program("echo gone >&2; exit 4");
    assert.deepEqual((await readHostTools(env, "http://root")).tools, [{ name: "a__b" }, { name: "c__d" }]);
    program("echo 'no JSON'");
    assert.deepEqual((await readHostTools({ COGNI_HOST_TOOLS: "a__b" }, "http://root")), { url: "http://root/mcp", tools: [{ name: "a__b" }] });
    assert.equal(await readHostTools({}, "http://root"), null);
  } finally {
    process.env.PATH = previous;
    rmSync(directory, { recursive: true });
  }
});

test("each agent gets the behaviour files, and its project's instructions", () => {
  const workspace = mkdtempSync(path.join(tmpdir(), "behaviour-"));
  const project = path.join(workspace, "files");
  mkdirSync(project);
  writeFileSync(path.join(workspace, "AGENTS.md"), "Be brief.");
  writeFileSync(path.join(workspace, "SOUL.md"), "Be kind.");
  writeFileSync(path.join(project, "AGENTS.md"), "Use tabs.");
  const both = [path.join(workspace, "AGENTS.md"), path.join(workspace, "SOUL.md")];
  const text = "# AGENTS.md\n\nBe brief.\n\n# SOUL.md\n\nBe kind.\n";
  const file = (adapter, name, cwd = project) => commandOf(adapter, workspace, cwd).files[name];
  assert.equal(file(codex, "codex/AGENTS.md"), text);
  assert.equal(file(codex, "codex/AGENTS.md", workspace), "# SOUL.md\n\nBe kind.\n", "it finds the other itself");
  assert.equal(file(claudeCode, "config/CLAUDE.md"), `${text}\n@${project}/AGENTS.md\n`);
  assert.equal(file(claudeCode, "config/CLAUDE.md", workspace), text);
  assert.equal(file(qwenCode, "home/.qwen/QWEN.md"), "# SOUL.md\n\nBe kind.\n", "it finds the other itself");
  const { instructions } = JSON.parse(file(opencode, "opencode.json"));
  assert.deepEqual(instructions, [...both, `${project}/AGENTS.md`]);
  const { args } = commandOf(aider, workspace, project);
  assert.deepEqual(args.filter((_, at) => args[at - 1] === "--read"), instructions);
  rmSync(workspace, { recursive: true });
});

test("each agent gets its model's limits", () => {
  const limits = { contextWindow: 128_000, maxOutputTokens: 9000 };
  const { CLAUDE_CODE_MAX_CONTEXT_TOKENS: window, CLAUDE_CODE_MAX_OUTPUT_TOKENS: output } = commandOf(claudeCode, "/w", "/w", limits).environment;
  assert.deepEqual([window, output], ["128000", "9000"]);
  assert.match(commandOf(codex, "/w", "/w", limits).files["codex/config.toml"], /^model_context_window = 128000$/m);
  const files = (adapter, name) => JSON.parse(commandOf(adapter, "/w", "/w", limits).files[name]);
  assert.deepEqual(files(opencode, "opencode.json").provider.sluicegate.models.m.limit, { context: 128_000, output: 9000 });
  const { contextWindowSize, samplingParams } = files(qwenCode, "settings.json").model.generationConfig;
  assert.deepEqual([contextWindowSize, samplingParams], [128_000, { max_tokens: 9000 }]);
  const { max_input_tokens: input, max_output_tokens: answer } = files(aider, "models.json")["openai/m"];
  assert.deepEqual([input, answer], [128_000, 9000]);
});

test("settings of a project name neither endpoint nor model", () => {
  const started = (adapter) => commandOf(adapter, "/w", "/w");
  assert.match(started(claudeCode).args.join(" "), /--setting-sources user --strict-mcp-config --model m/);
  assert.match(started(opencode).args.join(" "), /--model sluicegate\/m$/);
  assert.equal(started(opencode).environment.OPENCODE_DISABLE_PROJECT_CONFIG, "1");
  assert.match(started(qwenCode).args.join(" "), /--model m --openai-base-url http:\/\/localhost:8080\/v1/);
  assert.equal(started(qwenCode).environment.QWEN_CODE_SYSTEM_SETTINGS_PATH, "/w/.state/settings.json");
  const [{ name, extra_params: params }] = JSON.parse(started(aider).files["settings.json"]);
  assert.deepEqual([name, params.api_base, params.model], ["aider/extra_params", "http://localhost:8080/v1", "openai/m"]);
});

test("credentials of a registry are a header, and are not shown", async () => {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push([request.url, request.headers.authorization]);
    response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const directory = mkdtempSync(path.join(tmpdir(), "fetch-"));
  const file = { path: "a/-/a.tgz", integrity: "sha512-x", from: "package", programs: [] };
  writeFileSync(path.join(directory, "recipe.json"), JSON.stringify({ title: "A", files: [file] }));
  const program = new URL("./fetch.mjs", import.meta.url).pathname;
  const env = { ...process.env, NPM_CONFIG_REGISTRY: `http://me:canary%21@127.0.0.1:${server.address().port}/npm/`, NODE_USE_ENV_PROXY: "" };
  const run = promisify(execFile)(process.execPath, [program, path.join(directory, "recipe.json"), directory], { env });
  const { stdout, stderr } = await run.catch((error) => error);
  server.close();
  assert.deepEqual(seen, [["/npm/a/-/a.tgz", `Basic ${Buffer.from("me:canary!").toString("base64")}`]]);
  assert.match(stderr, /cannot download http:\/\/127\.0\.0\.1:\d+\/npm\/a\/-\/a\.tgz: HTTP 404/);
  assert.ok(!`${stdout}${stderr}`.includes("canary"), stderr);
  rmSync(directory, { recursive: true });
});

// Makes a workspace with a conversation.
function createWorkspace() {
  const workspace = mkdtempSync(path.join(tmpdir(), "agent-"));
  mkdirSync(path.join(workspace, ".cogni"));
  writeFileSync(path.join(workspace, ".cogni", "messages.json"), '[{"role":"user","content":"Hello"}]');
  return workspace;
}

// Runs a program of Node as an agent in `workspace`. Returns its events, and the answer or the error.
async function runIn(workspace, program, environment = {}, line = (text) => [events.text(text)]) {
  const adapter = {
    name: "fake",
    command: ({ prompt }) => ({ program: process.execPath, args: ["-e", program], stdin: prompt, environment: { CLAUDE_X: "adapter", OPENAI_BASE_URL: "adapter" } }),
    translate: () => ({ line, end: () => ({ answer: "done" }) }),
  };
  const found = [];
  const env = { SANDBOX_WORKSPACE: workspace, OPENAI_API_BASE: "http://localhost:8080/v1", COGNI_MODEL: "m", ...environment };
  try {
    const answer = await runAgent(adapter, (event) => found.push(event), env);
    return { found, answer };
  } catch (error) {
    return { found, error };
  }
}

// Runs a program of Node as an agent in a workspace of its own.
async function runProgram(...given) {
  const workspace = createWorkspace();
  try {
    return await runIn(workspace, ...given);
  } finally {
    removeTree(workspace);
  }
}

test("an agent reads its prompt and keeps its home beside the files", async () => {
  const { found, answer } = await runProgram("process.stdin.on('data', (d) => console.log(d + process.env.HOME))");
  assert.match(found[0].text, /^Hello\/.*\/\.fake-state\/home$/);
  assert.equal(answer, "done");
});

test("each turn in a workspace starts without the state of the last", async () => {
  const workspace = createWorkspace();
  // A killed agent leaves whatever it had: a lock, a link, a directory that may not be written.
  const program = `const fs = require("node:fs"), { HOME } = process.env, module = HOME + "/go/module";
    console.log(fs.readdirSync(HOME).length, fs.existsSync("${workspace}/left"));
    fs.writeFileSync(HOME + "/session.lock", "");
    fs.symlinkSync("${workspace}/.cogni", HOME + "/link");
    fs.mkdirSync(module, { recursive: true });
    fs.writeFileSync(module + "/go.mod", "");
    fs.chmodSync(module, 0o500);
    fs.writeFileSync("${workspace}/left", "");
    process.kill(process.pid, "SIGKILL")`;
  const turns = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const { found, error } = await runIn(workspace, program);
    turns.push([found[0]?.text, error.code]);
  }
  const later = ["0 true", "agent_killed"];
  assert.deepEqual(turns, [["0 false", "agent_killed"], later, later]);
  assert.ok(existsSync(path.join(workspace, ".cogni/messages.json")), "no link was followed");
  removeTree(workspace);
});

test("a link in place of a state directory goes, and not what it names", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "link-"));
  writeFileSync(path.join(directory, "file"), "");
  const link = `${directory}-link`;
  symlinkSync(directory, link);
  removeTree(link);
  removeTree(link);
  assert.deepEqual([existsSync(link), existsSync(path.join(directory, "file"))], [false, true]);
  removeTree(directory);
});

test("each end of an agent has its code", async () => {
  const table = [
    ["process.exit(3)", {}, "agent_error", /exit code 3/],
    ["console.error('out of luck'); process.exit(1)", {}, "agent_error", /out of luck/],
    ["process.kill(process.pid, 'SIGKILL')", {}, "agent_killed", /SIGKILL/],
    ["", { COGNI_MODEL: "" }, "config_error", /COGNI_MODEL/],
    ["", { OPENAI_API_BASE: "gopher://x" }, "config_error", /gopher/],
    ["", { SANDBOX_WORKSPACE: "/nonexistent" }, "input_error", /messages\.json/],
  ];
  for (const [program, environment, code, message] of table) {
    const { error } = await runProgram(program, environment);
    assert.ok(error instanceof AgentError, `${program} ${error?.stack}`);
    assert.equal(error.code, code);
    assert.match(error.message, message);
  }
});

test("a line that no adapter expects is a named error", async () => {
  const line = (text) => [events.text(JSON.parse(text).item.text)];
  const { found, error } = await runProgram("console.log('{}'); console.log('{}'); setTimeout(() => {}, 60_000)", {}, line);
  assert.deepEqual([found, error.code], [[], "agent_error"]);
  assert.match(error.message, /^fake printed a line of an unknown form/);
});

test("variables of the entry have precedence, but no address", async () => {
  const program = "const { CLAUDE_X, OPENAI_BASE_URL, NODE_OPTIONS } = process.env; console.log(CLAUDE_X, OPENAI_BASE_URL, NODE_OPTIONS)";
  const environment = { CLAUDE_X: "entry", OPENAI_BASE_URL: "entry", NODE_OPTIONS: "--no-warnings" };
  assert.equal((await runProgram(program, environment)).found[0].text, "entry adapter undefined");
  assert.equal((await runProgram(program)).found[0].text, "adapter adapter undefined", "control");
});

test("events have whole characters, and ids of bounded length", () => {
  const smiles = "\u{1f600}".repeat(70_000);
  const cut = events.result(`x${smiles}`).text;
  assert.ok(cut.isWellFormed() && cut.endsWith("\u{1f600}…"), cut.slice(-4));
  const call = events.toolCall("c", "n", { text: "half \ud83d" });
  assert.equal(JSON.parse(events.toLine(call)).arguments.text, "half \ufffd");
  const long = `call_${"s".repeat(2000)}`;
  const { id } = events.toolCall(long, "n", {});
  assert.ok(id.length < 128 && id === events.toolResult(long, "").id, id);
  assert.notEqual(id, events.toolResult(`${long}t`, "").id);
  assert.deepEqual([events.toolCall("", undefined, {}).id, events.toolCall("c", "", {}).name], ["unnamed", "unnamed"]);
});

test("a conversation becomes one prompt", () => {
  const user = (content) => ({ role: "user", content });
  assert.equal(buildPrompt(JSON.stringify([user("Hi")])), "Hi");
  const whole = buildPrompt(JSON.stringify([{ role: "system", content: "Be brief." }, user("a ``` b"), user("Hi")]));
  assert.match(whole, /^# Instructions\n\nBe brief\.\n\n# Earlier messages\n\n## user\n\n````\na ``` b\n````\n\n# Message to answer\n\nHi$/);
  const short = buildPrompt(JSON.stringify([user("x".repeat(200)), user("later"), user("Hi")]), 100);
  assert.ok(short.includes("later") && !short.includes("xxx"), short);
  for (const bad of ["{", "[]", "[{}]", '[{"role":"assistant","content":"x"}]', '[{"role":"user","content":" "}]']) {
    assert.throws(() => buildPrompt(bad), { code: "input_error" }, bad);
  }
});

test("lines are split at any byte, and long ones are dropped", async () => {
  const stream = new PassThrough();
  const found = [];
  splitLines(stream, (line) => found.push(line), 4);
  for (const chunk of ["ab", "c\nlonger\n\nd", "\xc3\xa9".slice(0, 0), "e"]) stream.write(chunk);
  stream.end();
  await new Promise((resolve) => stream.on("end", resolve));
  assert.deepEqual(found, ["abc", "de"]);
});

test("texts in events are bounded", () => {
  const long = "\u0001".repeat(1 << 20);
  for (const event of [events.text(long), events.result(long), events.toolResult("i", long), events.toolCall("i", "n", long)]) {
    assert.ok(Buffer.byteLength(JSON.stringify(event)) < 1 << 20, event.type);
  }
  assert.deepEqual(events.toolCall("i", "patch", "*** Begin").arguments, { text: "*** Begin" });
  assert.deepEqual(events.error(new Error("x")), { type: "error", code: "agent_error", message: "x" });
});

test("known warnings are hidden by exact match, however they are cut", async () => {
  const run = { model: "größe-1", root: "", state: "/s", prompt: "", agentRoot: "", behaviourFiles: [], project: null };
  const { hiddenLines } = claudeCode.command(run);
  const warning = '[claude-code:unrecognized_model] {"model":"größe-1","query_source":"sdk"}';
  assert.ok(hiddenLines.includes(warning));
  const other = warning.replace("größe-1", "other");
  const text = `${warning}\nfirst ü\n${warning}\n x ${warning}\n${other}\n${warning} more\n${warning}`;
  const shown = text.replace(`${warning}\nfirst`, "first").replace(`\n${warning}\n x`, "\n x");
  for (const size of [1, 2, 7, 1000]) {
    const stream = new PassThrough();
    const passed = [];
    const tail = captureTail(stream, 64 << 10, (chunk) => passed.push(chunk), hiddenLines);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size));
    stream.end();
    await new Promise((resolve) => stream.on("end", resolve));
    assert.deepEqual([Buffer.concat(passed).toString(), tail()], [shown, shown], `pieces of ${size}`);
  }
});
