/** Tests that a run is read again until its end is known, equal refusals are one, and what a difference leaves out is named. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unreachable } from "../../../api/problem";
import { type Call, groupRefusals } from "./calls";
import { leftOut } from "./Diff";
import { type RunDetails, isBehind } from "./useRun";

test("what cannot be read or is hidden is listed", () => {
  const lists = leftOut({
    unreadable: [{ path: [0x61, 0xff], reason: "has no read permission" }], hidden: { gitDirs: ["sub/.git"], ignored: [] },
  });
  assert.deepEqual(lists.map(({ entries }) => entries), [["a\\xff has no read permission"], ["sub/.git"]]);
});

test("a run without such entries has no list", () => {
  assert.deepEqual(leftOut({ unreadable: [], hidden: { gitDirs: [], ignored: [] } }), []);
});

const run = (state: string) => ({ state }) as RunDetails;

test("a run is read again after a failed request, and after its last event", () => {
  assert.equal(isBehind({ data: run("running"), error: unreachable() }, "ended"), true, "the request after the last event failed");
  assert.equal(isBehind({ data: run("running"), error: unreachable() }, "open"), true);
  assert.equal(isBehind({ data: run("running"), error: null }, "ended"), true, "the answer was older than the end");
  assert.equal(isBehind({ data: run("running"), error: null }, "open"), false);
  assert.equal(isBehind({ data: run("succeeded"), error: null }, "ended"), false);
  assert.equal(isBehind({ data: null, error: unreachable() }, "open"), false, "the page shows the failure");
});

const call = (callId: string, at: string, more: Partial<Call> = {}): Call =>
  ({
    callId, at, outcome: "refused", refusal: "rate_limited", rule: "run.calls", timeout: null, route: "chat_completions",
    modelAsked: "small", calls: 1, advice: null, ...more,
  }) as Call;

test("refusals that differ in their time alone are one", () => {
  const other = call("c3", "2026-11-29T10:00:03Z", { rule: "account.calls" });
  const flood = call("c4", "2026-11-29T10:00:04Z", { calls: 500 });
  const groups = groupRefusals([call("c1", "2026-11-29T10:00:01Z"), call("c2", "2026-11-29T10:00:02Z"), other, flood]);
  assert.deepEqual(groups.map(({ call: { callId }, count, last }) => [callId, count, last]), [
    ["c1", 502, "2026-11-29T10:00:04Z"], ["c3", 1, "2026-11-29T10:00:03Z"],
  ]);
});
