/** Tests that a limit is named with the setting that decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { causeTab, failureHelp, limitHelp } from "./FailureHelp";

test("the limit of a run is its agent's setting", () => {
  assert.match(limitHelp("run.total_tokens", "team:edit", "a") ?? "", /an operator sets total_tokens in \[agents\."team:edit"\]$/);
});

test("the limit of an account is changed by a command", () => {
  assert.match(limitHelp("account.cost", null, "acct-7") ?? "", /sluice limit --account acct-7 --cost DOLLARS/);
});

test("a limit that is not known is not said to be the account's", () => {
  assert.doesNotMatch(failureHelp("quota_exhausted", "acct-7"), /acct-7|sluice limit/);
});

test("another rule is not a limit", () => {
  assert.equal(limitHelp("account.frozen", null, "a"), null);
  assert.equal(limitHelp("field:tools", null, "a"), null);
});

test("each advice names the account as one word of a shell", () => {
  assert.match(failureHelp("balance_exhausted", "auth0|a$&b"), /--account 'auth0\|a\$&b'/);
  assert.match(limitHelp("account.cost", null, "auth0|acct-7") ?? "", /--account 'auth0\|acct-7' --cost/);
});

test("a failure leads to the tab with its cause", () => {
  const tabs = ["quota_exhausted", "no_answer", "timeout", "of_a_newer_server"].map((code) => causeTab(code).id);
  assert.deepEqual(tabs, ["refusals", "output", "timeline", "events"]);
});
