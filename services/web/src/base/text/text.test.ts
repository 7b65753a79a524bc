/** Tests how figures, JSON, differences and commands are read and written. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { creditCommand, limitCommand, shellWord } from "./commands";
import { readDiff } from "./diff";
import { formatBytes, formatDollars, formatDuration, plural } from "./format";
import { spreadJson } from "./json";

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

test("json is spread over lines", () => {
  const spread = spreadJson('{"a":[1,{"b":null}],"c":{},"d":[ ]}');
  assert.equal(spread, '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {},\n  "d": []\n}');
});

test("strings stay as they are", () => {
  for (const text of ['"{,:}"', '"a\\"b{"', '"\\\\"', '"\u202e, x"']) assert.equal(spreadJson(text), text);
});

test("doubled keys and long numbers stay visible", () => {
  const shown = spreadJson('{"path":"/safe","path":"/etc","n":12345678901234567890}');
  assert.match(shown, /"path": "\/safe",\n {2}"path": "\/etc"/);
  assert.match(shown, /12345678901234567890/);
});

test("what is not json is not lost", () => {
  for (const text of ["{", '"open', "\\", "]]]", "}{"]) {
    assert.equal(spreadJson(text).replace(/\s/g, ""), text);
  }
});

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

const ODD = ["auth0|acct-7", "a b", "it's", "$(id)", "`id`", "a;b", "a\\b", "*", "~", "=a", "#a", 'say "x"', "a!b", "", "-x"];

test("a shell reads each id as one word, as it is", () => {
  for (const id of ODD) assert.equal(execFileSync("sh", ["-c", `printf %s ${shellWord(id)}`], { encoding: "utf8" }), id);
});

test("a plain id has no quotes", () => assert.equal(shellWord("team:acct-7@example.org"), "team:acct-7@example.org"));

test("a command names the account as one word", () => {
  assert.equal(limitCommand("auth0|acct-7", "cost"), "sluice limit --account 'auth0|acct-7' --cost DOLLARS");
  assert.equal(creditCommand("a b"), "sluice billing credit --account 'a b' CREDITS");
});

test("a limit has the same option in both spellings", () => {
  for (const limit of ["total_tokens", "totalTokens"]) assert.equal(limitCommand("a", limit), "sluice limit --account a --total-tokens N");
  assert.equal(limitCommand("a", "requestsPerMinute"), null);
});
