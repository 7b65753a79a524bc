/** Tests the bars of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { timeline } from "./timeline";

const at = (second: number) => new Date(Date.UTC(2026, 10, 24, 9, 0, second)).toISOString();
const bounds = (bars: ReturnType<typeof timeline>) => bars.map(({ label, start, end }) => [label, start / 1000, end / 1000]);

test("phases follow each other from the order to the end", () => {
  const bars = timeline({
    run: { createdAt: at(0), endedAt: at(9), attempt: 0 },
    statuses: [{ phase: "preparing", at: at(2) }, { phase: "running", at: at(3) }, { phase: "settling", at: at(8) }],
    ends: [at(9)], calls: [], tools: [], now: 0,
  });
  assert.deepEqual(bounds(bars), [["queued", 0, 2], ["preparing", 2, 3], ["running", 3, 8], ["settling", 8, 9]]);
});

test("a later attempt begins where it was queued", () => {
  const bars = timeline({
    run: { createdAt: at(0), endedAt: null, attempt: 1 },
    statuses: [{ phase: "preparing", at: at(1) }, { phase: "queued", at: at(10) }, { phase: "preparing", at: at(12) }],
    ends: [at(9)], calls: [], tools: [], now: Date.parse(at(14)),
  });
  assert.deepEqual(bounds(bars), [["queued", 0, 2], ["preparing", 2, 4]]);
});
