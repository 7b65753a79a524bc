// Runs an unmodified agent once. Its adapter says how to start it and what its lines mean. Does not start a shell and does not
// retry.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

import { readInstructions } from "./behaviour.mjs";
import { buildPrompt } from "./conversation.mjs";
import { AgentError } from "./errors.mjs";
import { describe, readHostTools } from "./host_tools.mjs";
import { splitLines, captureTail } from "./lines.mjs";
import { removeTree } from "./state.mjs";

const MAX_STDERR_BYTES = 64 << 10;
// File of the state directory.
const HOST_TOOLS_TEXT = "host-tools.md";
// Variables of agents. The entry's own have precedence over the adapter's.
const OF_AGENTS = /^(ANTHROPIC_|CLAUDE_|CODEX_|DISABLE_|OPENCODE_|QWEN_|AIDER_|OPENAI_)/;
// Variables that only an adapter sets.
const OF_ADAPTERS = /^(ANTHROPIC_BASE_URL|OPENAI_API_BASE|OPENAI_BASE_URL|NODE_OPTIONS|NODE_PATH)$/;

// Runs `adapter` and passes its events to `emit`. Returns the answer.
export async function runAgent(adapter, emit, env = process.env) {
  const run = await prepareRun(adapter, env);
  const { program, args, environment = {}, files = {}, stdin = "", hiddenLines = [] } = adapter.command(run);
  writeFiles(run.state, files);
  const translator = adapter.translate(run);
  const options = { env: childEnvironment(env, { HOME: run.home, ...environment }), stdio: ["pipe", "pipe", "pipe"] };
  const ended = await new Promise((resolve, reject) => {
    const child = spawn(program, args, options);
    const stderr = captureTail(child.stderr, MAX_STDERR_BYTES, (chunk) => process.stderr.write(chunk), hiddenLines);
    let isReadable = true;
    const onLine = (line) => {
      try {
        if (isReadable) translator.line(line).forEach(emit);
      } catch (error) {
        isReadable = false;
        child.kill("SIGKILL");
        reject(new AgentError("agent_error", `${adapter.name} printed a line of an unknown form (${error.message})`));
      }
    };
    splitLines(child.stdout, onLine);
    child.stdin.on("error", () => {}); // the agent may end before it has read its prompt
    child.stdin.end(stdin);
    child.on("error", (error) => reject(new AgentError("start_error", `${adapter.name}: ${error.message}`)));
    child.on("close", (code, signal) => resolve({ code, signal, stderr: stderr() }));
  });
  (translator.last?.() ?? []).forEach(emit);
  return readAnswer(adapter, translator, ended);
}

// Reads the run's settings, and creates its state directory with the text about host tools, if it may call any.
async function prepareRun(adapter, env) {
  const run = readRun(adapter, env);
  const hostTools = await readHostTools(env, run.root);
  createState(run);
  const texts = hostTools === null ? {} : { [HOST_TOOLS_TEXT]: describe(hostTools.tools, adapter.hostToolName) };
  writeFiles(run.state, texts);
  const more = Object.keys(texts).map((name) => path.join(run.state, name));
  return { ...run, hostTools: hostTools?.url ?? null, ...readInstructions(run.workspace, process.cwd(), more) };
}

// Reads the run's settings. `home` and `state` are directories beside any repository.
function readRun(adapter, env) {
  const { COGNI_MODEL: model, OPENAI_API_BASE: base = "" } = env;
  if (!/^https?:/.test(base) || !URL.canParse(base)) {
    throw new AgentError("config_error", `OPENAI_API_BASE is not an HTTP address: ${base}`);
  }
  if (!model) throw new AgentError("config_error", "COGNI_MODEL is not set");
  const workspace = env.SANDBOX_WORKSPACE ?? "/workspace";
  const state = path.join(workspace, `.${adapter.name}-state`);
  const root = base.replace(/\/+$/, "").replace(/\/v1$/, "");
  let messages;
  try {
    messages = readFileSync(path.join(workspace, ".cogni", "messages.json"), "utf8");
  } catch (error) {
    throw new AgentError("input_error", `messages.json: ${error.message}`);
  }
  const { SANDBOX_AGENT_ROOT: agentRoot = "/opt/agent" } = env;
  const named = { agentRoot, model, root, v1: `${root}/v1`, workspace, state, home: path.join(state, "home"), env };
  return { ...named, ...readLimits(env), prompt: buildPrompt(messages) };
}

// Reads the tokens that the model takes and gives; undefined if they are not known.
function readLimits({ COGNI_CONTEXT_WINDOW: window, COGNI_MAX_TOKENS: output }) {
  const count = (value) => (Number(value) > 0 ? Number(value) : undefined);
  return { contextWindow: count(window), maxOutputTokens: count(output) };
}

// Creates the agent's state directory. One that an earlier run left in the workspace goes: the agent would read it.
function createState({ state, home }) {
  removeTree(state);
  mkdirSync(home, { recursive: true, mode: 0o700 });
}

// Writes files into the state directory.
function writeFiles(state, files) {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(state, name);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, content, { mode: 0o600 });
  }
}

// Returns the agent's environment: that of this process, with the adapter's variables.
function childEnvironment(env, adapters) {
  const inherited = Object.entries(env).filter(([name]) => !OF_ADAPTERS.test(name));
  const own = inherited.filter(([name]) => OF_AGENTS.test(name));
  return Object.fromEntries([...inherited, ...Object.entries(adapters), ...own]);
}

// Returns the answer, or throws the failure of a run that has ended.
function readAnswer(adapter, translator, { code, signal, stderr }) {
  if (signal) throw new AgentError("agent_killed", `${adapter.name} was ended by ${signal}`);
  const { answer, error } = translator.end();
  if (error) throw error;
  if (code !== 0) throw new AgentError("agent_error", `${adapter.name} ended with exit code ${code}${lastLine(stderr)}`);
  if (typeof answer !== "string" || answer.trim() === "") {
    throw new AgentError("no_answer", `${adapter.name} ended without an answer`);
  }
  return answer;
}

function lastLine(stderr) {
  const last = stderr.split("\n").findLast((line) => line.trim() !== "");
  return last ? `: ${last.trim()}` : "";
}

// Parses a line of JSON. Returns null for other output.
export function parseLine(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
