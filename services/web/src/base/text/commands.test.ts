/** Tests that commands mean in a shell what they say, whatever an id has in it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { creditCommand, limitCommand, shellWord } from "./commands";

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
