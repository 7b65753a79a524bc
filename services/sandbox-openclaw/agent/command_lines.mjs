// Describes OpenClaw's two command lines for a turn without a gateway: their options, and how each reports its outcome.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

import { SESSION_SETTINGS, TIMEOUT_SECONDS, toOlderConfiguration } from "./configuration.mjs";
import { AgentError, MAX_ARGUMENT_BYTES, MAX_MESSAGE_BYTES } from "./message.mjs";
import { parseOutcome, parseLocalOutcome } from "./outcome.mjs";

const MAX_HELP_BYTES = 1 << 20;
const SESSION = "turn"; // the container has only this session
const MESSAGE_OPTION = "--message="; // joined to its value, because a value that begins with a dash would be an option

// `openclaw agent exec` reads the message from a file and reports failures as such.
const EXEC = {
  maxBytes: MAX_MESSAGE_BYTES,
  configuration: (config) => config,
  // OpenClaw reads session settings from this path. It runs the only agent of its configuration.
  files: (agent) => ({ [`state/agents/${agent}/agent/settings.json`]: SESSION_SETTINGS }),
  args: ({ statePath, workspace, file }) => [
    ...["agent", "exec", "--json"],
    ...["--config", statePath("openclaw.json"), "--state-dir", statePath("state"), "--cwd", workspace],
    ...["--message-file", file, "--timeout", String(TIMEOUT_SECONDS)],
  ],
  parseOutcome: (ended) => parseOutcome(ended),
};

// `openclaw agent --local`, until about 2026.7, takes the message as an argument and reports every outcome as a success.
const LOCAL = {
  maxBytes: MAX_ARGUMENT_BYTES - MESSAGE_OPTION.length,
  configuration: toOlderConfiguration,
  files: () => ({}),
  args: ({ agent, text }) => [
    ...["agent", "--local", "--agent", agent, "--json"],
    ...["--session-id", SESSION, `${MESSAGE_OPTION}${text}`, "--timeout", String(TIMEOUT_SECONDS)],
  ],
  parseOutcome: (ended, { statePath, agent }) => parseLocalOutcome(ended, readTranscript(statePath, agent)),
};

// Reads the session's transcript; empty if OpenClaw wrote none.
function readTranscript(statePath, agent) {
  try {
    return readFileSync(path.join(statePath("state"), "agents", agent, "sessions", `${SESSION}.jsonl`), "utf8");
  } catch {
    return "";
  }
}

const COMMAND_LINES = { exec: EXEC, local: LOCAL };

// Returns the command line that the output of `agent exec --help` belongs to. An older OpenClaw ignores the word `exec`.
export function detectCommandLine(help) {
  return help.includes("--message-file") ? "exec" : "local";
}

// Returns the command line called `name`. Without a name, asks OpenClaw for its help, which takes seconds.
export async function selectCommandLine(name, start, options) {
  const known = name || detectCommandLine(await readHelp(start, options));
  if (Object.hasOwn(COMMAND_LINES, known)) return COMMAND_LINES[known];
  throw new AgentError("config_error", `SANDBOX_OPENCLAW_COMMAND is neither exec nor local: ${known}`);
}

async function readHelp(start, options) {
  try {
    const args = [...start, "agent", "exec", "--help"];
    return (await promisify(execFile)(process.execPath, args, { ...options, maxBuffer: MAX_HELP_BYTES })).stdout;
  } catch (error) {
    throw new AgentError("start_error", `OpenClaw did not print its help: ${error.message}`);
  }
}
