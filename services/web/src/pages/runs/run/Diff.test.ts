/** Tests that entries without a difference are named. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leftOut } from "./Diff";

test("what cannot be read or is hidden is listed", () => {
  const lists = leftOut({
    unreadable: [{ path: [0x61, 0xff], reason: "has no read permission" }], hidden: { gitDirs: ["sub/.git"], ignored: [] },
  });
  assert.deepEqual(lists.map(({ entries }) => entries), [["a\\xff has no read permission"], ["sub/.git"]]);
});

test("a run without such entries has no list", () => {
  assert.deepEqual(leftOut({ unreadable: [], hidden: { gitDirs: [], ignored: [] } }), []);
});
