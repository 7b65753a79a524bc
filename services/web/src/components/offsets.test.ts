/** Tests which rows of a virtual list are near the window. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Offsets } from "./offsets";

test("the rows that reach into the window are found", () => {
  const offsets = new Offsets([10, 20, 30, 40]);
  assert.equal(offsets.total, 100);
  assert.deepEqual(offsets.range(0, 5), [0, 1]);
  assert.deepEqual(offsets.range(15, 35), [1, 3]);
  assert.deepEqual(offsets.range(60, 500), [3, 4]);
  assert.deepEqual(offsets.range(-100, 0), [0, 1]);
});

test("an empty list has no rows", () => {
  assert.deepEqual(new Offsets([]).range(0, 100), [0, 0]);
});
