// Runs one OpenClaw turn in a sandbox: what the host has put into the workspace becomes its configuration and its message,
// and what it says at its end becomes the one JSON envelope that Sluicegate reads (README.md has its shape). OpenClaw itself
// is as npm has it. No shell, no retries, and nothing of the workspace is read as configuration.
//
// usage: node run.mjs
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

import { commandLine } from "./command_lines.mjs";
import { configuration } from "./configuration.mjs";
import { AgentError, message } from "./message.mjs";

const WORKSPACE = process.env.SANDBOX_WORKSPACE ?? "/workspace";
const OPENCLAW = process.env.OPENCLAW_PACKAGE ?? "/opt/openclaw/node_modules/openclaw";
const OWN = ".openclaw-state"; // below the workspace: what OpenClaw keeps, beside any repository
const MOST_STDOUT = 16 << 20; // bytes; the end is kept
const MOST_STDERR = 64 << 10;

const INSTRUCTIONS = `You are a coding agent in a closed container. You can run commands and read, write and edit files below
${WORKSPACE}. There is no network: do not fetch, search, clone, or install from a registry; it will fail.
A repository, if there is one, is in ${WORKSPACE}/repo. Commit what you change there.
`;
const PERSONA = "Be direct and concise. Do what was asked, check that it works, and say what you did.\n";

// What is told of the model by whoever ordered the run.
function order(env) {
  const { OPENAI_API_BASE: base, COGNI_MODEL: model } = env;
  const wrong = (why) => new AgentError("config_error", why);
  if (!base || !/^https?:/.test(base) || !URL.canParse(base)) throw wrong(`OPENAI_API_BASE is no HTTP address: ${base}`);
  if (!model) throw wrong("COGNI_MODEL is not set");
  const count = (name, usual) => {
    const text = env[name] ?? String(usual);
    if (!/^[1-9]\d{0,8}$/.test(text)) throw wrong(`${name} is no number of tokens: ${text}`);
    return Number(text);
  };
  return {
    base,
    model,
    workspace: WORKSPACE,
    contextWindow: count("COGNI_CONTEXT_WINDOW", 200_000),
    maxTokens: count("COGNI_MAX_TOKENS", 8192),
  };
}

const place = (name) => path.join(WORKSPACE, OWN, name);

// Makes the directories in which OpenClaw is started. What is there already was put in the way.
function clear() {
  mkdirSync(path.join(WORKSPACE, OWN), { mode: 0o700 });
  // Started in an empty directory: it reads `.env` where it starts.
  for (const dir of ["home", "state", "start"]) mkdirSync(place(dir), { mode: 0o700 });
}

// Makes everything OpenClaw is to find there, and beside it.
function furnish(files) {
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.dirname(place(file)), { mode: 0o700, recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content, null, 2);
    writeFileSync(place(file), text, { mode: 0o600, flag: "wx" });
  }
  for (const [name, text] of [["AGENTS.md", INSTRUCTIONS], ["SOUL.md", PERSONA]]) {
    try {
      writeFileSync(path.join(WORKSPACE, name), text, { flag: "wx" });
    } catch (error) {
      if (error.code !== "EEXIST") throw error; // somebody's own
    }
  }
}

// OpenClaw's variables: those of the run, but none by which it would take its configuration from elsewhere.
function environment() {
  const kept = Object.entries(process.env).filter(([name]) => !/^(OPENCLAW_|NODE_OPTIONS$|NODE_PATH$)/.test(name));
  return {
    ...Object.fromEntries(kept),
    HOME: place("home"),
    OPENCLAW_CONFIG_PATH: place("openclaw.json"),
    OPENCLAW_STATE_DIR: place("state"),
    OPENCLAW_LOAD_SHELL_ENV: "0",
    // It is started as it wants to be, so it need not start itself anew.
    OPENCLAW_NO_RESPAWN: "1",
    OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED: "1",
  };
}

const START = ["--disable-warning=ExperimentalWarning", path.join(OPENCLAW, "openclaw.mjs")];

// The end of a stream, as it comes.
function tail(stream, most, onPiece) {
  let text = Buffer.alloc(0);
  stream.on("data", (piece) => {
    onPiece?.(piece);
    text = Buffer.concat([text, piece]);
    if (text.length > 2 * most) text = text.subarray(text.length - most);
  });
  return () => text.toString("utf8");
}

function openclaw(args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...START, ...args], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const stdout = tail(child.stdout, MOST_STDOUT);
    const stderr = tail(child.stderr, MOST_STDERR, (piece) => process.stderr.write(piece));
    child.on("error", (error) => reject(new AgentError("start_error", `OpenClaw cannot be started: ${error.message}`)));
    child.on("close", (code, signal) => resolve({ code, signal, stdout: stdout(), stderr: stderr() }));
  });
}

async function run() {
  const wanted = order(process.env);
  const messages = readFileSync(path.join(WORKSPACE, ".cogni", "messages.json"), "utf8");
  message(messages); // nothing is begun that nobody could answer
  clear();
  const options = { cwd: place("start"), env: environment() };
  const command = await commandLine(process.env.SANDBOX_OPENCLAW_COMMAND, START, options);
  const said = message(messages, command.most);
  furnish({ ...command.files, "openclaw.json": command.configuration(configuration(wanted)), "message.txt": said });
  const args = command.args({ place, workspace: WORKSPACE, file: place("message.txt"), said });
  return command.translated(await openclaw(args, options), place);
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
