/** Tests that live changes do not move what is being read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Run, readFilter, toggleGroup } from "./filter";
import { mergeChanges } from "./list";

const run = (runId: string, second: number, state: Run["state"] = "running", attempt = 0): Run => ({
  runId, account: "acct-7", agentId: "sandbox:agent", user: null, state, attempt, priority: "normal",
  createdAt: `2026-11-24T09:00:0${second}.000Z`, startedAt: null, endedAt: null,
});
const all = readFilter(new URLSearchParams());
const list = { runs: [run("b", 5), run("a", 3)], waiting: new Set<string>() };

test("a known run changes in its place", () => {
  const after = mergeChanges(list, [run("a", 3, "succeeded")], all);
  assert.deepEqual(after.runs.map((one) => `${one.runId} ${one.state}`), ["b running", "a succeeded"]);
  assert.equal(after.waiting.size, 0);
});

test("a new run waits, and is counted once", () => {
  const once = mergeChanges(list, [run("c", 7, "queued")], all);
  const twice = mergeChanges(once, [run("c", 7, "running")], all);
  assert.deepEqual([...twice.waiting], ["c"]);
  assert.equal(twice.runs.length, 2);
});

test("a run that the filter leaves out does not wait", () => {
  const failed = readFilter(new URLSearchParams("state=failed"));
  const queued = mergeChanges(list, [run("c", 7, "failed")], failed);
  assert.equal(queued.waiting.size, 1);
  assert.equal(mergeChanges(queued, [run("c", 7, "running", 1)], failed).waiting.size, 0);
});

test("a run of an older page is not new", () => {
  assert.equal(mergeChanges(list, [run("old", 1)], all).waiting.size, 0);
});

test("a late state does not revive an ended run, another attempt does", () => {
  const ended = mergeChanges(list, [run("a", 3, "failed")], all);
  assert.equal(mergeChanges(ended, [run("a", 3, "running")], all).runs[1]?.state, "failed");
  assert.equal(mergeChanges(ended, [run("a", 3, "queued")], all).runs[1]?.state, "failed");
  assert.equal(mergeChanges(list, [run("b", 5, "starting")], all).runs[0]?.state, "running");
  assert.equal(mergeChanges(ended, [run("a", 3, "queued", 1)], all).runs[1]?.state, "queued");
});

test("a change keeps what only the list says, and a position only while the run waits", () => {
  const listed = { ...run("a", 3, "queued"), queueAhead: 2, pullRequest: { number: 7, url: "https://github.com/a/b/pull/7" } };
  const waits = mergeChanges({ runs: [listed], waiting: new Set() }, [run("a", 3, "queued")], all).runs[0];
  assert.deepEqual([waits?.queueAhead, waits?.pullRequest?.number], [2, 7]);
  const runs = mergeChanges({ runs: [listed], waiting: new Set() }, [run("a", 3, "running")], all).runs[0];
  assert.deepEqual([runs?.state, runs?.queueAhead, runs?.pullRequest?.number], ["running", undefined, 7]);
});

test("a run whose id begins otherwise does not wait", () => {
  const nightly = readFilter(new URLSearchParams("id=nightly-"));
  assert.deepEqual([...mergeChanges(list, [run("nightly-2", 7), run("c", 8)], nightly).waiting], ["nightly-2"]);
});

test("a group of states is switched as one", () => {
  const group = { label: "x", states: ["failed", "timed_out"] as Run["state"][] };
  assert.deepEqual(toggleGroup(["queued", "failed"], group), ["queued", "failed", "timed_out"]);
  assert.deepEqual(toggleGroup(["queued", "failed", "timed_out"], group), ["queued"]);
});
