/** Tests how limits are read, and their bars. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import type { Schemas } from "../../api/client";
import { type LimitRow, formatShare, nearestLimit, nearnessOf, readLimits } from "./limits";
import { UseBars } from "./UseBar";

const none = { allowed: null, left: null, reserved: 0, used: 3 };
const unlimited: Schemas["AccountLimits"] = {
  callsInFlight: none, inputTokens: none, outputTokens: none, requests: none, requestsPerMinute: none, totalTokens: none,
  cost: { allowed: null, left: null, reserved: "0.00", used: "0.25" },
};

test("the nearest limit comes first, those without one last", () => {
  const rows = readLimits({
    ...unlimited,
    totalTokens: { allowed: 1000, left: 830, reserved: 0, used: 170 },
    cost: { allowed: "2.50", left: "0.50", reserved: "1.00", used: "1.00" },
  });
  assert.deepEqual(rows.slice(0, 2).map((row) => row.id), ["cost", "totalTokens"]);
  assert.equal(rows.at(-1)?.share, null);
  assert.deepEqual([rows[0]?.allowed, rows[0]?.used, rows[0]?.left], ["$2.50", "$1.00", "$0.50"]);
  assert.equal(rows[0]?.share, 0.8);
});

test("an account without limits has no nearest one", () => assert.equal(nearestLimit(unlimited), null));

test("a bar never leaves its track", () => {
  const row = nearestLimit({ ...unlimited, requests: { allowed: 10, left: 0, reserved: 4, used: 9 } });
  assert.equal(row?.usedShare, 0.9);
  assert.equal(((row?.usedShare ?? 0) + (row?.reservedShare ?? 0)).toFixed(3), "1.000");
  assert.equal(row?.share, 1.3);
});

test("a limit of nothing is used up", () => {
  const row = nearestLimit({ ...unlimited, requests: { allowed: 0, left: 0, reserved: 0, used: 0 } });
  assert.equal(nearnessOf(row?.share ?? null), "over");
});

test("a limit that is not a number has a bar all the same", () => {
  const row = nearestLimit({ ...unlimited, cost: { allowed: "x", left: "x", reserved: "x", used: "x" } });
  assert.deepEqual([row?.usedShare, row?.reservedShare], [1, 0]);
});

test("what is not all is never 100 percent", () => {
  assert.deepEqual([formatShare(0.999), formatShare(1), formatShare(1.3), formatShare(0)], ["99 %", "100 %", "130 %", "0 %"]);
});

const row: LimitRow = {
  id: "requests", label: "Requests", allowed: "10", used: "4", reserved: "5", left: "1", usedShare: 0.4, reservedShare: 0.5, share: 0.9,
};

test("a bar has a used and a reserved part, and the same in words", () => {
  const html = renderToStaticMarkup(<UseBars rows={[row]} />);
  assert.match(html, /class="use-used" width="40"/);
  assert.match(html, /class="use-reserved" x="40" y="2" width="50"/);
  assert.match(html, /4 used, 5 reserved, 1 left of 10/);
  assert.match(html, /nearly used up/);
  assert.equal(/style=/.test(html), false);
});

test("a use without a limit is in the table alone", () => {
  const free = { ...row, allowed: null, left: null, usedShare: null, reservedShare: null, share: null };
  const html = renderToStaticMarkup(<UseBars rows={[free]} />);
  assert.equal(html.includes("<svg"), false);
  assert.match(html, /<th scope="row">Requests<\/th>/);
  assert.match(html, /<td class="num">no limit<\/td>/);
});
