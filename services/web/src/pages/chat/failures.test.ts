/** Tests that a limit is named with the setting that decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limitHelp } from "./failures";

test("the limit of a run is its agent's setting", () => {
  assert.match(limitHelp("run.total_tokens", "team:edit", "a") ?? "", /an operator sets total_tokens in \[agents\."team:edit"\]$/);
});

test("the limit of an account is changed by a command", () => {
  assert.match(limitHelp("account.cost", null, "acct-7") ?? "", /sluice limit --account acct-7 --cost DOLLARS/);
});

test("another rule is no limit", () => {
  assert.equal(limitHelp("account.frozen", null, "a"), null);
  assert.equal(limitHelp("field:tools", null, "a"), null);
});
