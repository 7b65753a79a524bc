// Types commands into a terminal of tmux, samples its screen, and prints the session as an SVG.
// scripts/record-terminal.sh starts it in a world of its own.
import { execFileSync } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { svg } from "./svg.mjs";

const COLUMNS = 116;
const ROWS = 17;
const SAMPLE_INTERVAL = 80;
const MAX_WAIT = 60_000;
// Each account's runs while `audit top` is shown. The last one has a limit that its call exceeds.
const LOAD = [
  ["acct-7", "fake-words120-gap5ms-cost"], ["acct-9", "fake-words60-gap5ms-cost"], ["acct-7", "fake-words90-gap5ms-cost"],
  ["acct-12", "fake-words40-gap5ms-cost"], ["acct-9", "fake-status429-cost"], ["acct-31", "fake-words75-gap5ms-cost"],
  ["acct-12", "fake-words20-cost", "--total-tokens", "100"],
];

const tmux = (...command) => execFileSync("tmux", ["-L", `sluice-record-${process.pid}`, ...command], { encoding: "utf8" });
const sluice = (...command) => execFileSync("sluice", command, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

// Screens with the time of each, without those that equal the one before.
const frames = [];
const began = Date.now();

function sample() {
  const screen = tmux("capture-pane", "-p", "-e");
  if (screen !== frames.at(-1)?.screen) frames.push({ at: Date.now() - began, screen });
  return screen;
}

// Samples the screen for some milliseconds.
async function watch(milliseconds) {
  for (const end = Date.now() + milliseconds; Date.now() < end; await wait(SAMPLE_INTERVAL)) sample();
}

// Samples the screen until it has `words` and ends with a prompt.
async function finished(words) {
  for (const end = Date.now() + MAX_WAIT; ; await wait(SAMPLE_INTERVAL)) {
    const plain = sample().replace(/\x1b\[[\d;]*m/g, "").trimEnd();
    if (plain.includes(words) && plain.endsWith("$")) return;
    if (Date.now() > end) throw new Error(`no ${words} on the screen:\n${plain}`);
  }
}

// Types a command in some pieces, and starts it.
async function type(command) {
  for (const piece of command.match(/.{1,24}/g)) {
    tmux("send-keys", "-l", piece);
    await watch(120);
  }
  await watch(300);
  tmux("send-keys", "Enter");
}

async function play() {
  await type('sluice run --account acct-7 "In one sentence: what is a sluice gate?"');
  await finished("tokens in");
  await watch(1500);
  await type('sluice run --detach --account acct-7 --agent team:reviewer "Review the parser"');
  await finished("Review");
  await type("sluice audit trace --last");
  await finished("settled");
  await watch(2500);
  tmux("send-keys", "C-l");
  await type("sluice audit top --group account --by cost");
  const runs = [];
  for (const [account, model, ...limits] of LOAD) {
    runs.push(sluice("run", "--detach", "--account", account, "--model", model, ...limits, "Summarise the tickets").trim());
    await watch(600);
  }
  await watch(4000);
  return runs;
}

tmux("-f", "/dev/null", "new-session", "-d", "-x", COLUMNS, "-y", ROWS, "env PS1='$ ' bash --norc --noprofile");
try {
  tmux("set", "-g", "status", "off");
  await finished("");
  frames.length = 0;
  const runs = await play();
  process.stdout.write(svg(frames, { columns: COLUMNS, rows: ROWS, end: Date.now() - began }));
  for (const run of runs) {
    try {
      sluice("runs", "wait", run);
    } catch {
      // Two of the runs fail on purpose.
    }
  }
} finally {
  tmux("kill-server");
}
