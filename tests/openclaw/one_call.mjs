// How often the real OpenClaw command line calls for one error answer, from the first call to its own end.
//
// usage: scripts/openclaw.sh node tests/openclaw/one_call.mjs <ROW
//
// ROW is one JSON line as for classify.mjs (`status`, `body`, `api`, `headers`). `fallback: true` gives OpenClaw a
// second model to turn to, `again: true` runs a second turn, which shows whether the first has shut the provider.
// Prints one JSON line: `calls`, exit `codes` and `outputs` of each turn. A turn takes twenty to forty seconds, minutes
// if OpenClaw repeats calls: enough to show for a row or two that the whole program acts as classify.mjs judges, which
// takes milliseconds a row. OPENCLAW_STDERR=1 shows what OpenClaw says meanwhile.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const PACKAGE = process.env.OPENCLAW_PACKAGE;
const TURN_SECONDS = 180; // OpenClaw's own limit, which does not bound its waiting between calls
const WALL_SECONDS = 300;
const OUTPUT = 400; // characters kept of what it says

if (!PACKAGE) throw new Error("OPENCLAW_PACKAGE is not set: run this with scripts/openclaw.sh node");

// The documented shape of a gateway's configuration, with nothing but one provider and no tools.
function config(folder, port, api, fallback) {
  const model = (id) => ({
    id,
    name: id,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 200_000,
    maxTokens: 8000,
  });
  const models = [model("test-model"), model("other-model")];
  const baseUrl = `http://127.0.0.1:${port}${api === "anthropic-messages" ? "" : "/v1"}`;
  const workspace = join(folder, "workspace");
  return {
    models: { mode: "replace", providers: { cogni: { baseUrl, apiKey: "unused", api, models } } },
    agents: {
      defaults: {
        model: { primary: "cogni/test-model", fallbacks: fallback ? ["cogni/other-model"] : [] },
        workspace,
        skipBootstrap: true,
        timeoutSeconds: TURN_SECONDS,
        sandbox: { mode: "off" },
      },
      entries: { main: { default: true, workspace } },
    },
    tools: { allow: ["read"] },
    plugins: { allow: ["memory-core"] },
    cron: { enabled: false },
    gateway: { mode: "local" },
  };
}

async function turn(folder, number) {
  const what = ["--agent", "main", "--session-id", `turn-${number}`, "--message", "hello"];
  const argv = ["agent", "--local", ...what, "--json", "--timeout", `${TURN_SECONDS}`];
  const child = spawn(process.execPath, [join(PACKAGE, "openclaw.mjs"), ...argv], {
    cwd: join(folder, "workspace"),
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      OPENCLAW_CONFIG_PATH: join(folder, "openclaw.json"),
      OPENCLAW_STATE_DIR: join(folder, "state"),
      OPENCLAW_DISABLE_BONJOUR: "1",
      OPENCLAW_LOAD_SHELL_ENV: "0",
      OPENCLAW_NO_RESPAWN: "1",
      OPENCLAW_SKIP_CHANNELS: "1",
    },
    stdio: ["ignore", "pipe", process.env.OPENCLAW_STDERR ? "inherit" : "ignore"],
    timeout: WALL_SECONDS * 1000,
    killSignal: "SIGKILL",
  });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { code, output: output.slice(0, OUTPUT) };
}

const row = JSON.parse(await text(process.stdin));
const { status, body, headers = {}, api = "openai-completions", again = false, fallback = false } = row;
let calls = 0;
const server = createServer((request, response) => {
  calls += 1;
  request.resume().on("end", () => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
});
await once(server.listen(0, "127.0.0.1"), "listening");
const folder = mkdtempSync(join(tmpdir(), "sw-openclaw-"));
try {
  mkdirSync(join(folder, "workspace"));
  writeFileSync(join(folder, "openclaw.json"), JSON.stringify(config(folder, server.address().port, api, fallback)));
  const report = { calls: [], codes: [], outputs: [] };
  for (let number = 1; number <= (again ? 2 : 1); number += 1) {
    calls = 0;
    const { code, output } = await turn(folder, number);
    report.calls.push(calls);
    report.codes.push(code);
    report.outputs.push(output);
  }
  console.log(JSON.stringify(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
  server.closeAllConnections();
  server.close();
}
