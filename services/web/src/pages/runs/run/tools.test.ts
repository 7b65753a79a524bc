/** Tests the tool calls of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLog, type ToolEvent } from "./eventLog";
import { readHostTools, reportedTools } from "./tools";

const signal = new AbortController().signal;

const told = (round: number, ...events: ToolEvent["event"][]) => events.map((event) => ({ round, event }));

test("a call and its result that an agent reports are one tool", () => {
  const tools = reportedTools(told(0,
    { type: "tool_call", id: "__proto__", name: "bash", arguments: "{}", cutBytes: 3 },
    { type: "tool_result", id: "__proto__", result: "no", isError: true, cutBytes: 4 },
    { type: "tool_result", id: "unknown", result: "x", isError: false },
  ));
  const shown = tools.map(({ name, state, result, cutBytes, resultCutBytes }) => [name, state, result, cutBytes, resultCutBytes]);
  assert.deepEqual(shown, [["bash", "failed", "no", 3, 4]]);
});

test("a later attempt may use an id again", () => {
  const log = new EventLog();
  log.append([
    { type: "tool_call", seq: 1, id: "call_1", name: "first", arguments: "{}" },
    { type: "error", seq: 2, code: "no_answer", message: "x" },
    { type: "tool_call", seq: 3, id: "call_1", name: "second", arguments: "{}" },
    { type: "tool_result", seq: 4, id: "call_1", result: "ok", isError: false },
  ]);
  assert.deepEqual(reportedTools(log.toolEvents).map(({ name, state }) => [name, state]), [["first", "called"], ["second", "answered"]]);
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
