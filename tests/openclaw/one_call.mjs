// How often the real OpenClaw command line calls for one error answer, from the first call to its own end.
//
// usage: scripts/openclaw.sh node tests/openclaw/one_call.mjs <ROW
//
// ROW is one JSON line as for classify.mjs (`status`, `body`, `api`, `headers`). `fallback: true` gives OpenClaw a
// second model to turn to, `again: true` runs a second turn, which shows whether the first has shut the provider.
// Prints one JSON line: `calls`, exit `codes` and `outputs` of each turn. A turn takes twenty to forty seconds, minutes
// if OpenClaw repeats calls: enough to show for a row or two that the whole program acts as classify.mjs judges, which
// takes milliseconds a row. OPENCLAW_STDERR=1 shows what OpenClaw says meanwhile.
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { config, turn } from "./command_line.mjs";

const TURN_SECONDS = 180; // OpenClaw's own limit, which does not bound its waiting between calls
const WALL_SECONDS = 300;
const OUTPUT = 400; // characters kept of what it says

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
  const asked = { folder, port: server.address().port, api, models, primary: "test-model", fallbacks };
  const settings = config({ ...asked, seconds: TURN_SECONDS, tools: { allow: ["read"] } });
  writeFileSync(join(folder, "openclaw.json"), JSON.stringify(settings));
  const report = { calls: [], codes: [], outputs: [] };
  for (let number = 1; number <= (again ? 2 : 1); number += 1) {
    calls = 0;
    const limits = { seconds: TURN_SECONDS, wall: WALL_SECONDS };
    const { code, output } = await turn({ folder, session: `turn-${number}`, message: "hello", ...limits });
    report.calls.push(calls);
    report.codes.push(code);
    report.outputs.push(output.slice(0, OUTPUT));
  }
  console.log(JSON.stringify(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
  server.closeAllConnections();
  server.close();
}
