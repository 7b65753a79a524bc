// Runs the agent once while the image is built, so that the image contains Node's compile cache for a run. The scripted model
// calls tools and then answers. A failed run fails the build, so this is also the image's first test.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const ANSWER = "rehearsed";
const CALLS = [
  ["exec", { command: "echo one > file.txt && git --version" }],
  ["edit", { path: "file.txt", edits: [{ oldText: "one", newText: "two" }] }],
  ["read", { path: "file.txt" }],
];

function chunk(delta, finish_reason = null) {
  const head = { id: "rehearsal", object: "chat.completion.chunk", created: 0, model: "rehearsal" };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
}

let turn = 0;
const model = http.createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const call = CALLS[turn];
    turn += 1;
    if (call) {
      const [name, input] = call;
      const called = { index: 0, id: `call_${turn}`, type: "function", function: { name, arguments: JSON.stringify(input) } };
      response.write(chunk({ role: "assistant", tool_calls: [called] }) + chunk({}, "tool_calls"));
    } else {
      response.write(chunk({ role: "assistant", content: ANSWER }) + chunk({}, "stop"));
    }
    response.end("data: [DONE]\n\n");
  });
});

model.listen(0, "127.0.0.1", () => {
  const workspace = mkdtempSync(path.join(tmpdir(), "rehearsal-"));
  mkdirSync(path.join(workspace, ".cogni"));
  writeFileSync(path.join(workspace, ".cogni", "messages.json"), JSON.stringify([{ role: "user", content: "Rehearse." }]));
  const env = {
    ...process.env,
    SANDBOX_WORKSPACE: workspace,
    OPENAI_API_BASE: `http://127.0.0.1:${model.address().port}`,
    COGNI_MODEL: "rehearsal",
  };
  const agent = fileURLToPath(new URL("run.mjs", import.meta.url));
  execFile(process.execPath, [agent], { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
    model.close();
    model.closeAllConnections();
    rmSync(workspace, { recursive: true, force: true });
    const succeeded = !error && JSON.parse(stdout).payloads.some(({ text }) => text === ANSWER) && turn === CALLS.length + 1;
    if (!succeeded) {
      console.error(`the rehearsal failed after ${turn} calls: ${error?.message ?? ""}\n${stdout}\n${stderr}`);
      process.exitCode = 1;
    }
  });
});
