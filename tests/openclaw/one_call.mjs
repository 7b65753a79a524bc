// Counts the calls that the real OpenClaw command line makes for one error answer.
//
// usage: scripts/openclaw.sh node tests/openclaw/one_call.mjs <ROW
//
// ROW is one JSON line as for classify.mjs (`status`, `body`, `api`, `headers`). `fallback: true` configures a fallback
// model. `again: true` runs a second turn, which shows whether the first has locked the provider.
// Prints one JSON line: `calls`, exit `codes` and `outputs` of each turn. A turn takes twenty to forty seconds, or minutes
// with retries. Run it for a row or two, to check that the whole program behaves as classify.mjs reports; classify.mjs
// takes milliseconds a row. OPENCLAW_STDERR=1 shows OpenClaw's stderr.
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { config, turn } from "./command_line.mjs";

const TURN_SECONDS = 180; // OpenClaw's own timeout, which does not bound its delays between calls
const WALL_SECONDS = 300;
const MAX_OUTPUT_CHARS = 400;

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
  const models = [{ id: "test-model" }, { id: "other-model" }];
  const fallbacks = fallback ? ["other-model"] : [];
  const options = { folder, port: server.address().port, api, models, primary: "test-model", fallbacks };
  const settings = config({ ...options, seconds: TURN_SECONDS, tools: { allow: ["read"] } });
  writeFileSync(join(folder, "openclaw.json"), JSON.stringify(settings));
  const report = { calls: [], codes: [], outputs: [] };
  for (let number = 1; number <= (again ? 2 : 1); number += 1) {
    calls = 0;
    const limits = { seconds: TURN_SECONDS, wall: WALL_SECONDS };
    const { code, output } = await turn({ folder, session: `turn-${number}`, message: "hello", ...limits });
    report.calls.push(calls);
    report.codes.push(code);
    report.outputs.push(output.slice(0, MAX_OUTPUT_CHARS));
  }
  console.log(JSON.stringify(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
  server.closeAllConnections();
  server.close();
}
