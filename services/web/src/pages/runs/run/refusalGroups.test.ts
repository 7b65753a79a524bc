/** Tests that equal refusals are one, and others are not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "./calls";
import { groupRefusals } from "./refusalGroups";

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
