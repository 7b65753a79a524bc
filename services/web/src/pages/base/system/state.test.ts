/** Tests what is shown of the system. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatUptime, readCounts, toneOf } from "./state";

test("runs are counted in the order of their life", () => {
  const counts = readCounts({ failed: 1, novel: 4, queued: 2, running: 0 });
  assert.deepEqual(counts.map(({ state, share }) => [state, share]), [["queued", 0.5], ["running", 0], ["failed", 0.25], ["novel", 1]]);
});

test("no runs make no share", () => assert.deepEqual(readCounts({ queued: 0 }), [{ state: "queued", count: 0, share: 0 }]));

test("a time of work has two units at most", () => {
  assert.deepEqual([5, 60, 3_600 * 3 + 120, 3_600 * 24 * 3 + 3_600 * 4].map(formatUptime), ["5 s", "1 m", "3 h 2 m", "3 d 4 h"]);
});

test("a state of a later version has no meaning", () => {
  assert.deepEqual(["ok", "full", "novel"].map(toneOf), ["good", "bad", "idle"]);
});
