/** Tests the tool calls of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readHostTools, reportedTools } from "./tools";

const signal = new AbortController().signal;

test("a call and its result that an agent reports are one tool", () => {
  const tools = reportedTools([
    { type: "tool_call", id: "__proto__", name: "bash", arguments: "{}" },
    { type: "tool_result", id: "__proto__", result: "no", isError: true },
    { type: "tool_result", id: "unknown", result: "x", isError: false },
  ]);
  assert.deepEqual(tools.map(({ name, state, result }) => [name, state, result]), [["bash", "failed", "no"]]);
});

test("a denied call names the person who decided", async (context) => {
  const call = {
    callId: "c", attempt: 0, tool: "git.push", effect: "writes", state: "denied", arguments: "{}", code: "approval_denied",
    resultBytes: null, connection: null, beganAt: "2026-11-24T09:00:00Z", endedAt: null, decidedBy: "ann",
  };
  context.mock.method(globalThis, "fetch", () => Promise.resolve(Response.json({ calls: [call], nextCursor: "c2" })));
  const { items, nextCursor } = await readHostTools("r", undefined, signal);
  assert.equal(nextCursor, "c2");
  assert.equal(items[0]?.isFailure, true);
  assert.deepEqual(items[0]?.facts, [["Effect", "writes"], ["Code", "approval_denied"], ["Decided by", "ann"]]);
});
