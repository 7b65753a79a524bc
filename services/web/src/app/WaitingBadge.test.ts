/** Tests the count of approvals in the navigation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { badgeText } from "./WaitingBadge";

test("nothing that waits is no count, and many are cut", () => {
  assert.deepEqual([0, 1, 99, 100, 200].map(badgeText), ["", "1", "99", "99+", "99+"]);
});
