/** Tests that a page that failed is asked for again, and nothing is thrown away. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { beginList, withFailure, withPage } from "./pageList";
import { unreachable } from "./problem";

const first = withPage(beginList<number>("k"), { key: "k", wants: null }, { items: [1, 2], nextCursor: "c2" });

test("a further page follows the items so far", () => {
  const both = withPage(first, { key: "k", wants: "c2" }, { items: [3], nextCursor: null });
  assert.deepEqual([both.items, both.next], [[1, 2, 3], null]);
});

test("a page that failed is known, and the items stay", () => {
  const failed = withFailure(first, { key: "k", wants: "c2" }, unreachable());
  assert.deepEqual([failed.items, failed.failed, failed.wants], [[1, 2], "c2", undefined]);
  const both = withPage(failed, { key: "k", wants: failed.failed }, { items: [3], nextCursor: null });
  assert.deepEqual([both.items, both.error], [[1, 2, 3], null]);
});

test("the first page of another key replaces the items", () => {
  const other = withPage(first, { key: "other", wants: null }, { items: [9], nextCursor: null });
  assert.deepEqual([other.key, other.items], ["other", [9]]);
});
