/** Tests the arithmetic of months. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addMonths, isMonth, monthOf, nameMonth } from "./month";

test("a month passes the turn of a year", () => {
  assert.equal(addMonths("2026-12", 1), "2027-01");
  assert.equal(addMonths("2026-01", -1), "2025-12");
  assert.equal(addMonths("2026-11", -24), "2024-11");
});

test("a month is that of UTC", () => assert.equal(monthOf(new Date("2026-12-01T00:30:00+02:00")), "2026-11"));

test("only months are months", () => {
  assert.deepEqual(["2026-11", "2026-13", "2026-1", "../x", ""].map(isMonth), [true, false, false, false, false]);
});

test("a month has a name", () => assert.equal(nameMonth("2026-11"), "November 2026"));
