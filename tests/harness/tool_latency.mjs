// Calls a host tool from inside a sandbox, one call after the other, in each way that an agent has. Prints one JSON object: the
// microseconds of each call, by way.
import { spawnSync } from "node:child_process";
import http from "node:http";

const CALLS = Number(process.env.CALLS);
const TOOL = "core__get_current_time";
const { RUN_ID: runId, COGNI_GATEWAY_URL: gateway } = process.env;
const connection = new http.Agent({ keepAlive: true, maxSockets: 1 });
let connections = 0;
const open = connection.createConnection.bind(connection);
connection.createConnection = (...given) => {
  connections += 1;
  return open(...given);
};

// Posts `body` over the one connection, and returns the answer's JSON.
const post = (path, body) => new Promise((resolve, reject) => {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const request = http.request(`${gateway}${path}`, { method: "POST", agent: connection, headers }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (piece) => { text += piece; });
    response.on("end", () => resolve({ status: response.statusCode, text }));
  });
  request.on("error", reject).end(JSON.stringify(body));
});

const check = (isResult, found) => {
  if (!isResult) throw new Error(`no result: ${JSON.stringify(found)}`);
};

const WAYS = {
  async exec(number) {
    const found = await post("/tool/exec", { runId, callId: `exec-${number}`, tool: TOOL, args: {} });
    check(found.status === 200 && JSON.parse(found.text).ok, found);
  },
  async mcp(number) {
    const params = { name: TOOL, arguments: {} };
    const found = await post("/mcp", { jsonrpc: "2.0", id: number, method: "tools/call", params });
    check(found.status === 200 && found.text.includes("unix_ms"), found);
  },
  async cogni_tool() {
    const { status, stdout, stderr } = spawnSync("cogni-tool", ["exec", TOOL, "{}"], { encoding: "utf8" });
    check(status === 0, { stdout, stderr });
  },
};

const micros = {};
for (const [way, call] of Object.entries(WAYS)) {
  for (let number = 0; number < 20; number += 1) await call(`warm-${number}`); // connections open, code is compiled
  micros[way] = [];
  for (let number = 0; number < CALLS; number += 1) {
    const began = process.hrtime.bigint();
    await call(number);
    micros[way].push(Number((process.hrtime.bigint() - began) / 1000n));
  }
}
connection.destroy();
process.stdout.write(JSON.stringify({ micros, connections }));
