// The two command lines that OpenClaw has had for a turn without a gateway: what each is told, and what its end means.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";

import { NEVER, older, SETTINGS } from "./configuration.mjs";
import { AgentError, MOST, MOST_ARGUMENT } from "./message.mjs";
import { translated, translatedOlder } from "./outcome.mjs";

const MOST_HELP = 1 << 20; // bytes
const SESSION = "turn"; // the only one there is
const MESSAGE = "--message="; // in one piece with it: what begins with a dash would be an option

// `openclaw agent exec`: the message comes from a file, and the end is told apart.
const EXEC = {
  most: MOST,
  configuration: (config) => config,
  // Where OpenClaw looks for settings of sessions.
  files: { "state/agents/main/agent/settings.json": SETTINGS },
  args: ({ place, workspace, file }) => [
    ...["agent", "exec", "--json"],
    ...["--config", place("openclaw.json"), "--state-dir", place("state"), "--cwd", workspace],
    ...["--message-file", file, "--timeout", String(NEVER)],
  ],
  translated: (ended) => translated(ended),
};

// `openclaw agent --local`, until 2026.7 or so: the message is an argument, and everything is a success.
const LOCAL = {
  most: MOST_ARGUMENT - MESSAGE.length,
  configuration: older,
  files: {},
  args: ({ said }) => [
    ...["agent", "--local", "--agent", "main", "--json"],
    ...["--session-id", SESSION, `${MESSAGE}${said}`, "--timeout", String(NEVER)],
  ],
  translated: (ended, place) => translatedOlder(ended, transcript(place)),
};

function transcript(place) {
  try {
    return readFileSync(path.join(place("state"), "agents", "main", "sessions", `${SESSION}.jsonl`), "utf8");
  } catch {
    return ""; // it did not come to that
  }
}

const NAMED = { exec: EXEC, local: LOCAL };

// Which of them an OpenClaw has whose `agent exec --help` says so: an older one takes `exec` for a word of its own.
export function nameOf(help) {
  return help.includes("--message-file") ? "exec" : "local";
}

// The one that `name` says, or that OpenClaw, started with `start` in `options`, says itself, which takes it seconds.
export async function commandLine(name, start, options) {
  const known = name || nameOf(await help(start, options));
  if (Object.hasOwn(NAMED, known)) return NAMED[known];
  throw new AgentError("config_error", `SANDBOX_OPENCLAW_COMMAND is neither exec nor local: ${known}`);
}

async function help(start, options) {
  try {
    const args = [...start, "agent", "exec", "--help"];
    return (await promisify(execFile)(process.execPath, args, { ...options, maxBuffer: MOST_HELP })).stdout;
  } catch (error) {
    throw new AgentError("start_error", `OpenClaw does not say what it can do: ${error.message}`);
  }
}
