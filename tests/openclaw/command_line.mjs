// Runs the real OpenClaw's command line with one provider on this machine.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const PACKAGE = process.env.OPENCLAW_PACKAGE;

if (!PACKAGE) throw new Error("OPENCLAW_PACKAGE is not set: run this with scripts/openclaw.sh node");

// Builds a gateway's configuration with a single provider at `port` that speaks `api`.
export function config({ folder, port, api, models, primary, fallbacks = [], seconds, ...more }) {
  const model = ({ id, reasoning = false, input = ["text"] }) => ({
    id,
    name: id,
    reasoning,
    input,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 200_000,
    maxTokens: 8192,
  });
  const baseUrl = `http://127.0.0.1:${port}${api === "anthropic-messages" ? "" : "/v1"}`;
  const provider = { baseUrl, apiKey: "proxy-handles-auth", api, models: models.map(model) };
  const workspace = join(folder, "workspace");
  return {
    models: { mode: "replace", providers: { cogni: provider } },
    agents: {
      defaults: {
        model: { primary: `cogni/${primary}`, fallbacks: fallbacks.map((id) => `cogni/${id}`) },
        workspace,
        skipBootstrap: true,
        timeoutSeconds: seconds,
        sandbox: { mode: "off" },
      },
      list: [{ id: "main", default: true, workspace }], // both versions accept a list
    },
    plugins: { allow: ["memory-core"] },
    cron: { enabled: false },
    gateway: { mode: "local" },
    ...more,
  };
}

// Runs one turn of a session with the configuration and state in `folder`. Returns its exit code and its output.
export async function turn({ folder, session, message, options = [], seconds, wall }) {
  const words = ["--agent", "main", "--session-id", session, "--message", message, ...options];
  const argv = ["agent", "--local", ...words, "--json", "--timeout", `${seconds}`];
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
    timeout: wall * 1000,
    killSignal: "SIGKILL",
  });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { code, output };
}
