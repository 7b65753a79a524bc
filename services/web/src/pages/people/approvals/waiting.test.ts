/** Tests what is shown of calls that wait. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Approval, compare, formatSeconds, secondsLeft, stillWaiting } from "./waiting";

const call = (callId: string, decideBy: string | null = null): Approval => ({
  account: "a", arguments: "{}", askedAt: "2026-11-27T10:00:00Z", callId, decideBy, decidedBy: null, effect: "reads", gateway: null,
  gatewayAgent: null, runId: "r",
  state: "waiting", tool: "t",
});

test("a new list says what came and what left", () => {
  const { came, left } = compare([call("1"), call("2")], [call("2"), call("3")]);
  assert.deepEqual([came.map((one) => one.callId), left.map((one) => one.callId)], [["3"], ["1"]]);
});

test("a decided call is gone, one that was missing once is not", () => {
  const listed = [call("1"), call("2"), call("3")];
  const outcomes = [
    { approval: call("1"), text: "approved", tone: "good" as const },
    { approval: call("2"), text: "gone", tone: "idle" as const },
  ];
  assert.deepEqual(stillWaiting(listed, outcomes).map((one) => one.callId), ["2", "3"]);
});

test("a countdown ends at nothing", () => {
  assert.deepEqual([-3, 0.9, 59.9, 60, 545, 7260].map(formatSeconds), ["0 s", "0 s", "59 s", "1 m 00 s", "9 m 05 s", "2 h 01 m"]);
});

test("a call without an end has no countdown", () => {
  assert.equal(secondsLeft(call("1"), 0), null);
  assert.equal(secondsLeft(call("1", "not a time"), 0), null);
  assert.equal(secondsLeft(call("1", "1970-01-01T00:00:09Z"), 4000), 5);
});
