/** Tests formats of figures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes, formatDollars, formatDuration, plural } from "./format";

test("dollars keep every digit that is not zero", () => {
  assert.equal(formatDollars("0.000026"), "$0.000026");
  assert.equal(formatDollars("1234.5"), "$1,234.50");
  assert.equal(formatDollars("-0.10"), "-$0.10");
  assert.equal(formatDollars("odd"), "odd");
});

test("durations and sizes are short", () => {
  assert.deepEqual([340, 4_200, 185_000, 7_800_000].map(formatDuration), ["340 ms", "4.2 s", "3 m 05 s", "2 h 10 m"]);
  assert.deepEqual([0, 1536, 5 << 20].map(formatBytes), ["0 B", "1.5 KiB", "5.0 MiB"]);
  assert.deepEqual([plural(1, "call"), plural(2000, "call")], ["1 call", "2,000 calls"]);
});
