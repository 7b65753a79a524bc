// Runs one OpenClaw turn in a sandbox. Builds OpenClaw's configuration and message from the environment and the workspace, and
// prints OpenClaw's outcome as the one JSON envelope that Sluicegate reads (README.md shows it). The npm package of OpenClaw is
// unchanged. Does not start a shell, does not retry, and does not read configuration from the workspace.
//
// usage: node run.mjs
import { spawn } from "node:child_process";
import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

import { selectCommandLine } from "./command_lines.mjs";
import { buildConfiguration } from "./configuration.mjs";
import { AgentError, buildMessage } from "./message.mjs";
import { removeTree } from "./state.mjs";
import { buildInstructions, INSTRUCTIONS_START, parseAgent } from "./tools.mjs";

const WORKSPACE = process.env.SANDBOX_WORKSPACE ?? "/workspace";
const OPENCLAW = process.env.OPENCLAW_PACKAGE ?? "/opt/openclaw/node_modules/openclaw";
const STATE_DIR = ".openclaw-state"; // OpenClaw's files below the workspace, beside any repository
const MAX_STDOUT_BYTES = 16 << 20; // the end is kept
const MAX_STDERR_BYTES = 64 << 10;

const PERSONA = "Be direct and concise. Do what was asked, check that it works, and say what you did.\n";

// Reads the run's settings from the environment.
function readConfig(env) {
  const { OPENAI_API_BASE: base, COGNI_MODEL: model } = env;
  const configError = (why) => new AgentError("config_error", why);
  if (!base || !/^https?:/.test(base) || !URL.canParse(base)) throw configError(`OPENAI_API_BASE is not an HTTP address: ${base}`);
  if (!model) throw configError("COGNI_MODEL is not set");
  const count = (name, fallback) => {
    const text = env[name] ?? String(fallback);
    if (!/^[1-9]\d{0,8}$/.test(text)) throw configError(`${name} is not a number of tokens: ${text}`);
    return Number(text);
  };
  return {
    base,
    model,
    ...parseAgent(env.SANDBOX_OPENCLAW_AGENT ?? "main"),
    workspace: WORKSPACE,
    hostTools: env.COGNI_HOST_TOOLS ? `${env.COGNI_GATEWAY_URL}/mcp` : null,
    contextWindow: count("COGNI_CONTEXT_WINDOW", 200_000),
    maxTokens: count("COGNI_MAX_TOKENS", 8192),
  };
}

const statePath = (name) => path.join(WORKSPACE, STATE_DIR, name);

// Creates the directories in which OpenClaw starts. A state directory that an earlier run left in the workspace goes: OpenClaw
// would read its files.
function createDirectories() {
  removeTree(path.join(WORKSPACE, STATE_DIR));
  mkdirSync(path.join(WORKSPACE, STATE_DIR), { mode: 0o700 });
  // OpenClaw reads `.env` in its working directory, so that directory is an empty one.
  for (const dir of ["home", "state", "start"]) mkdirSync(statePath(dir), { mode: 0o700 });
}

// Writes OpenClaw's files, and the agent's instructions unless the workspace has its own.
function writeFiles(files, instructions) {
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.dirname(statePath(file)), { mode: 0o700, recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content, null, 2);
    writeFileSync(statePath(file), text, { mode: 0o600, flag: "wx" });
  }
  for (const [name, text] of [["AGENTS.md", instructions], ["SOUL.md", PERSONA]]) {
    const file = path.join(WORKSPACE, name);
    // An earlier run's agent may have had other tools.
    if (beginsWith(file, INSTRUCTIONS_START)) rmSync(file);
    try {
      writeFileSync(file, text, { flag: "wx" });
    } catch (error) {
      if (error.code !== "EEXIST") throw error; // the workspace has its own
    }
  }
}

// Returns whether a file begins with a text.
function beginsWith(file, text) {
  try {
    return lstatSync(file).isFile() && readFileSync(file, "utf8").startsWith(text);
  } catch {
    return false;
  }
}

// Builds OpenClaw's environment: the run's variables without those that point to another configuration.
function buildEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OPENCLAW_|NODE_OPTIONS$|NODE_PATH$)/.test(name));
  return {
    ...Object.fromEntries(kept),
    HOME: statePath("home"),
    OPENCLAW_CONFIG_PATH: statePath("openclaw.json"),
    OPENCLAW_STATE_DIR: statePath("state"),
    OPENCLAW_LOAD_SHELL_ENV: "0",
    OPENCLAW_LOG_LEVEL: "error", // others would stand beside each answer
    // The options are already those that OpenClaw would restart itself with.
    OPENCLAW_NO_RESPAWN: "1",
    OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: "1",
  };
}

const START = ["--disable-warning=ExperimentalWarning", path.join(OPENCLAW, "openclaw.mjs")];

// Captures the last `maxBytes` of a stream. Returns a function that returns the text.
function captureTail(stream, maxBytes, onChunk) {
  let text = Buffer.alloc(0);
  stream.on("data", (chunk) => {
    onChunk?.(chunk);
    text = Buffer.concat([text, chunk]);
    if (text.length > 2 * maxBytes) text = text.subarray(text.length - maxBytes);
  });
  return () => text.toString("utf8");
}

// Runs OpenClaw to its end.
function runOpenclaw(args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...START, ...args], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const stdout = captureTail(child.stdout, MAX_STDOUT_BYTES);
    const stderr = captureTail(child.stderr, MAX_STDERR_BYTES, (chunk) => process.stderr.write(chunk));
    child.on("error", (error) => reject(new AgentError("start_error", `OpenClaw cannot be started: ${error.message}`)));
    child.on("close", (code, signal) => resolve({ code, signal, stdout: stdout(), stderr: stderr() }));
  });
}

async function run() {
  const config = readConfig(process.env);
  const messages = readFileSync(path.join(WORKSPACE, ".cogni", "messages.json"), "utf8");
  buildMessage(messages); // refuses bad input before anything starts
  createDirectories();
  const options = { cwd: statePath("start"), env: buildEnvironment() };
  const command = await selectCommandLine(process.env.SANDBOX_OPENCLAW_COMMAND, START, options);
  const text = buildMessage(messages, command.maxBytes);
  const configuration = command.configuration(buildConfiguration(config));
  const { agent } = config;
  writeFiles({ ...command.files(agent), "openclaw.json": configuration, "message.txt": text }, buildInstructions(config));
  const args = command.args({ statePath, agent, workspace: WORKSPACE, file: statePath("message.txt"), text });
  return command.parseOutcome(await runOpenclaw(args, options), { statePath, agent });
}

const started = performance.now();
let outcome;
try {
  outcome = await run();
} catch (error) {
  const code = error instanceof AgentError ? error.code : "input_error";
  outcome = { exit: 1, payloads: [], error: { code, message: error.message } };
}
const { exit, payloads, error, agentMeta } = outcome;
const durationMs = Math.round(performance.now() - started);
process.exitCode = exit;
process.stdout.write(`${JSON.stringify({ payloads, meta: { durationMs, error, ...(agentMeta && { agentMeta }) } })}\n`);
