/** Tests what the charts of an overview are made of. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Overview, codeRows, countRuns, formatAmount, modelRows, readRange, spanLabel, spendingRows, waitRows } from "./figures";

const usage = { calls: 2, unpriced: 0, inputTokens: 1000, outputTokens: 234, cost: "0.000046", credits: 460 };
const overview: Overview = {
  range: "7d", from: "2026-11-23T00:00:00.000Z", until: "2026-11-30T00:00:00.000Z", spanSeconds: 86_400, total: usage,
  byTime: [{ at: "2026-11-29T00:00:00.000Z", ...usage }], byAccount: [{ account: "acct 7", ...usage }],
  byModel: [{ model: null, ...usage }], runs: [{ at: "2026-11-29T00:00:00.000Z", succeeded: 3, failed: 1, cancelled: 0, timedOut: 0 }],
  failures: [{ code: "container_failed", count: 1 }], refusals: [],
  waits: { groups: [{ belowMs: 1000, runs: 3 }, { belowMs: 120_000, runs: 0 }, { belowMs: null, runs: 1 }], longestMs: 900_000 },
  approvals: { waiting: 0, oldestAt: null },
};

test("a table has exact amounts beside the rounded bars", () => {
  assert.deepEqual(spendingRows(overview), [{ label: "29 Nov", values: [0.000046], exact: ["$0.000046"] }]);
  assert.deepEqual(modelRows(overview)[0], { label: "no model", values: [0.000046, 1234, 2], exact: ["$0.000046", "1,234", "2"] });
});

test("calls without a price do not cost nothing", () => {
  const unpriced = { ...overview, byModel: [{ model: "new", ...usage, cost: "0.00", unpriced: 2 }] };
  assert.equal(modelRows(unpriced)[0]?.exact?.[0], "no price");
  const some = { ...overview, byModel: [{ model: "new", ...usage, unpriced: 1 }] };
  assert.equal(modelRows(some)[0]?.exact?.[0], "$0.000046", "control");
});

test("waits, codes and outcomes have words", () => {
  assert.deepEqual(waitRows(overview).map(({ label }) => label), ["less than 1 s", "less than 2 m", "2 m or more"]);
  assert.deepEqual(codeRows(overview.failures), [{ label: "container failed", values: [1] }]);
  assert.deepEqual(countRuns(overview), { ended: 4, succeeded: 3 });
});

test("days are those of the server, and an unknown range is a day", () => {
  assert.equal(spanLabel("2026-11-29T00:00:00.000Z", 86_400), "29 Nov");
  assert.deepEqual([readRange("7d"), readRange("2h"), readRange(null)], ["7d", "24h", "24h"]);
  assert.deepEqual([formatAmount(0), formatAmount(0.1234), formatAmount(12)], ["$0.00", "$0.1234", "$12.00"]);
});
