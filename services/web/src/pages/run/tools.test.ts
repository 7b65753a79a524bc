/** Tests the tool calls of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTools, reportedTools } from "./tools";

const signal = new AbortController().signal;

test("a call and its result that an agent reports are one tool", () => {
  const tools = reportedTools([
    { type: "tool_call", id: "__proto__", name: "bash", arguments: "{}" },
    { type: "tool_result", id: "__proto__", result: "no", isError: true },
    { type: "tool_result", id: "unknown", result: "x", isError: false },
  ]);
  assert.deepEqual(tools.map(({ name, state, result }) => [name, state, result]), [["bash", "failed", "no"]]);
});

test("a server without the list of tools has none", async (context) => {
  context.mock.method(globalThis, "fetch", () => Promise.resolve(new Response("{}", { status: 404 })));
  assert.equal(await readTools("r", undefined, signal), null);
});

test("calls of host tools are read with their state", async (context) => {
  const tools = [{ callId: "c", tool: "git.push", state: "denied", askedAt: "2026-11-24T09:00:00Z", arguments: "{}" }];
  context.mock.method(globalThis, "fetch", () => Promise.resolve(Response.json({ tools, nextCursor: null })));
  const read = await readTools("r", undefined, signal);
  assert.deepEqual(read?.tools.map(({ name, isFailure }) => [name, isFailure]), [["git.push", true]]);
});
