// Starts a real gateway from OPENCLAW_PACKAGE, and connects a client that records every frame. The client only matches
// responses to requests; it does not interpret frames.
import { spawn } from "node:child_process";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";

import { config } from "./command_line.mjs";

const PACKAGE = process.env.OPENCLAW_PACKAGE;
const WebSocket = createRequire(`${PACKAGE}/package.json`)("ws");
const START_SECONDS = 120;
const FRAME_TIMEOUT_SECONDS = 240;

export const TOKEN = "test-token";
export const PROTOCOL = process.env.OPENCLAW_VERSION.startsWith("2026.2.") ? 3 : 4;
export const CLIENT = { id: "gateway-client", version: "0.1.0", platform: "linux", mode: "backend" };
export const SCOPES = ["operator.read", "operator.write", "operator.admin", "operator.approvals"];

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function freePort() {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address();
  await once(server.close(), "close");
  return port;
}

// Starts a gateway in `folder` with providers at `modelPort`. Calls `early` with each client that the gateway refuses at start.
export async function startGateway({ folder, modelPort, bind = "loopback", early = () => {} }) {
  const port = await freePort();
  const settings = config({ folder, port: modelPort, api: "openai-completions", models: [{ id: "fake" }, { id: "fake-2" }], primary: "fake", seconds: 120 });
  const { cogni } = settings.models.providers;
  // An answer of 401 or 402 locks a provider for all sessions, so each such story has its own.
  for (const slot of ["s1", "s2", "s3"]) settings.models.providers[`cogni-${slot}`] = cogni;
  settings.models.providers.nowhere = { ...cogni, baseUrl: "http://127.0.0.1:9/v1" };
  settings.agents.defaults.heartbeat = { every: "0m" };
  settings.tools = { allow: ["exec", "read", "sessions_spawn"], elevated: { enabled: false } };
  settings.gateway = { mode: "local", port, bind, auth: { mode: "token", token: TOKEN }, controlUi: { enabled: false } };
  mkdirSync(join(folder, "workspace"), { recursive: true });
  writeFileSync(join(folder, "workspace", "AGENTS.md"), "You are an agent under test.\n");
  writeFileSync(join(folder, "openclaw.json"), JSON.stringify(settings));
  const log = openSync(join(folder, "gateway.log"), "w");
  const child = spawn(process.execPath, [join(PACKAGE, "openclaw.mjs"), "gateway", "run"], {
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
    stdio: ["ignore", log, log],
  });
  const gateway = { port, child, folder, stop: () => stop(child) };
  for (const deadline = Date.now() + START_SECONDS * 1000; ; await sleep(50)) {
    const client = new Client(port);
    try {
      await client.opened;
      if ((await client.connect()).ok) return gateway;
      early(client);
    } catch {
      // not listening yet
    } finally {
      await client.close();
    }
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill("SIGKILL");
      throw new Error(`no gateway: ${readFileSync(join(folder, "gateway.log"), "utf8").slice(-2000)}`);
    }
  }
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
  await ended;
  clearTimeout(timer);
}

// Creates a device identity with its key pair.
export function newDevice() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  const id = createHash("sha256").update(raw).digest("hex");
  return { id, publicKey: raw.toString("base64url"), privateKey };
}

// Signs a gateway's challenge.
function signChallenge({ id, publicKey, privateKey }, { client, role, scopes, auth }, { ts, nonce }) {
  const text = ["v2", id, client.id, client.mode, role, scopes.join(","), `${ts}`, auth?.token ?? "", nonce].join("|");
  return { id, publicKey, signature: sign(null, Buffer.from(text), privateKey).toString("base64url"), signedAt: ts, nonce };
}

export class Client {
  lines = [];
  #requests = 0;
  #waiting = [];

  constructor(port, host = "127.0.0.1") {
    this.socket = new WebSocket(`ws://${host}:${port}`, { perMessageDeflate: false });
    this.opened = once(this.socket, "open");
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
    this.socket.on("error", () => {});
    this.socket.on("message", (data) => this.#record({ dir: "recv", frame: JSON.parse(data.toString()) }));
    this.socket.on("close", (code, reason) => this.#record({ dir: "close", frame: { code, reason: reason.toString() } }));
  }

  #record(line) {
    this.lines.push(line);
    this.#waiting = this.#waiting.filter((waiter) => !waiter(line));
  }

  // Waits for the first line, recorded or new, that `matches` accepts. Fails when the connection closes.
  line(matches) {
    const found = this.lines.find(matches);
    if (found) return Promise.resolve(found.frame);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no such frame: ${matches}`)), FRAME_TIMEOUT_SECONDS * 1000);
      this.#waiting.push((line) => {
        const done = matches(line) || line.dir === "close";
        if (!done) return false;
        clearTimeout(timer);
        matches(line) ? resolve(line.frame) : reject(new Error(`closed: ${JSON.stringify(line.frame)}`));
        return true;
      });
    });
  }

  event(matches) {
    return this.line(({ dir, frame }) => dir === "recv" && frame.type === "event" && matches(frame));
  }

  send(frame) {
    this.#record({ dir: "send", frame });
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  // Sends a request and waits for its first response; with `final`, for the first that is not an acceptance.
  async call(method, params, { final = false, ...more } = {}) {
    const id = `${++this.#requests}`;
    this.send({ type: "req", id, method, params, ...more });
    const isAcceptance = (frame) => final && ["accepted", "started", "in_flight"].includes(frame.payload?.status);
    return this.line(({ dir, frame }) => dir === "recv" && frame.type === "res" && frame.id === id && !isAcceptance(frame));
  }

  async connect({ min = 3, max = 4, auth = { token: TOKEN }, device, scopes = SCOPES, caps = ["tool-events"] } = {}) {
    const challenge = await this.event(({ event }) => event === "connect.challenge");
    const params = { minProtocol: min, maxProtocol: max, client: CLIENT, role: "operator", scopes, caps, ...(auth && { auth }) };
    if (device) params.device = signChallenge(device, params, challenge.payload);
    return this.call("connect", params);
  }

  async close() {
    this.socket.close();
    await this.closed;
  }
}
