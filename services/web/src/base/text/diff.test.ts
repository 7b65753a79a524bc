/** Tests that each line of a difference is what it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDiff } from "./diff";

const kinds = (diff: string) => readDiff(diff).map((line) => line.kind);

test("lines that look like heads are lines in a hunk", () => {
  assert.deepEqual(kinds("--- a\n+++ b\n@@ -1,3 +1,2 @@\n x\n+++ y\n--- z\n-@@ -1 +1 @@\n"),
    ["head", "head", "hunk", "same", "add", "remove", "remove"]);
});

test("a difference of git has several files and hunks", () => {
  const diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@ f\n-a\n+b\n\\ No newline at end of file\n"
    + "@@ -9,0 +9,1 @@\n+c\ndiff --git a/y b/y\nBinary files differ\n";
  assert.deepEqual(kinds(diff), ["head", "head", "head", "head", "hunk", "remove", "add", "same", "hunk", "add", "head", "head"]);
});
