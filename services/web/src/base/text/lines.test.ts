/** Tests how texts are compared. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareLines } from "./lines";

const shown = (before: string, after: string) => compareLines(before, after).map((line) => line.text);

test("equal texts have no difference", () => assert.deepEqual(shown("a\nb\n", "a\nb\n"), []));

test("a changed line is removed and added between what stays", () => {
  assert.deepEqual(shown("a\nb\nc\n", "a\nB\nc\n"), [" a", "-b", "+B", " c"]);
  assert.deepEqual(compareLines("b\n", "B\n").map((line) => line.kind), ["remove", "add"]);
});

test("lines in the middle that stay are found", () => {
  assert.deepEqual(shown("a\nb\nc\n", "x\nb\ny\n"), ["-a", "+x", " b", "-c", "+y"]);
});

test("an empty text has no lines", () => {
  assert.deepEqual(shown("", "a\n"), ["+a"]);
  assert.deepEqual(shown("a\n", ""), ["-a"]);
});

test("a missing end of the last line is a difference", () => {
  assert.deepEqual(shown("a\n", "a"), ["-a", "+a (no end of line)"]);
});

test("far lines are counted", () => {
  const lines = Array.from({ length: 20 }, (_, at) => `l${at}`);
  const before = `${lines.join("\n")}\n`;
  const found = shown(before, before.replace("l10\n", "new\n"));
  assert.deepEqual([found[0], found.at(-1), found.length], ["… 7 unchanged", "… 6 unchanged", 10]);
});

test("texts of many lines are replaced as a whole", () => {
  const text = (name: string) => `${Array.from({ length: 2_000 }, (_, at) => `${name}${at}`).join("\n")}\n`;
  assert.equal(compareLines(text("a"), text("b")).length, 4_000);
});
