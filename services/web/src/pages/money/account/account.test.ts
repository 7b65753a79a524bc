/** Tests what is read from fields of an account, and the arithmetic of months. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type LimitFields, changesOf, readCount, readLimitFields } from "./fields";
import { addMonths, isMonth, monthOf, nameMonth } from "./month";

const empty: LimitFields = {
  cost: "", totalTokens: "", inputTokens: "", outputTokens: "", requests: "", requestsPerMinute: "", callsInFlight: "",
};

test("an empty field is not a limit", () => assert.deepEqual(readLimitFields(empty), { body: {}, errors: {} }));

test("dollars stay text, so that nothing rounds them", () => {
  assert.deepEqual(readLimitFields({ ...empty, cost: "$0.100000001" }).body, { cost: "0.100000001" });
});

test("every mistake is named", () => {
  const { errors } = readLimitFields({ ...empty, cost: "2,50", totalTokens: "1e6", requests: "-3", callsInFlight: "4" });
  assert.deepEqual(Object.keys(errors).sort(), ["cost", "requests", "totalTokens"]);
});

test("a count may have separators in their places", () => {
  assert.deepEqual(["1,000,000", "1 000", "12_500", "-7", "0"].map(readCount), [1_000_000, 1000, 12_500, -7, 0]);
  assert.deepEqual(["1,00", "1.5", "", "9007199254740993", "0x10"].map(readCount), [null, null, null, null, null]);
});

test("a change names the value before and after", () => {
  assert.deepEqual(changesOf({ ...empty, requests: "4" }, { ...empty, cost: "1 " }), [
    { label: "Cost", from: "no limit", to: "1" },
    { label: "Requests", from: "4", to: "no limit" },
  ]);
});

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
