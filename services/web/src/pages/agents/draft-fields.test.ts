/** Tests how the form of a draft is read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AGENT_ID, EMPTY_FIELDS, readDiff, readDraft } from "./draft-fields";

test("fields without a text are left out", () => {
  assert.deepEqual(readDraft({ ...EMPTY_FIELDS, agentId: " team:a ", image: "a:1" }), { agentId: "team:a", image: "a:1" });
});

test("a line of the command is one argument", () => {
  const { argv } = readDraft({ ...EMPTY_FIELDS, argv: "/usr/bin/review\r\n--title=two words\n\n -x" });
  assert.deepEqual(argv, ["/usr/bin/review", "--title=two words", " -x"]);
});

test("models are divided by commas and lines", () => {
  assert.deepEqual(readDraft({ ...EMPTY_FIELDS, models: "a, b\nc,," }).models, ["a", "b", "c"]);
});

test("cost stays text and tokens become a number", () => {
  const draft = readDraft({ ...EMPTY_FIELDS, cost: "0.50", totalTokens: "200,000" });
  assert.deepEqual([draft.cost, draft.totalTokens], ["0.50", 200_000]);
});

test("lines of a diff have kinds", () => {
  const kinds = readDiff("--- a\n+++ b\n@@ -1 +1,2 @@\n x\n+++ y\n-z\n").map((line) => line.kind);
  assert.deepEqual(kinds, ["head", "head", "head", "same", "add", "remove"]);
});

test("the pattern of ids is one that browsers can read", () => {
  const pattern = new RegExp(`^(?:${AGENT_ID})$`, "v");
  const ids = ["team:code-review", "team", "Team:a", "a:b:c", "-a:b"];
  assert.deepEqual(ids.filter((id) => pattern.test(id)), ["team:code-review"]);
});
