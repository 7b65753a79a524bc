/** Tests what is said and asked before a freeze. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeFreeze, nameTarget, wordFor } from "./changeFreeze";
import { freezesOf } from "./freezes";

const answers = (status: number, body: object) => {
  globalThis.fetch = () => Promise.resolve(new Response(JSON.stringify(body), { status }));
};

test("a person types the name, or the action for all", () => {
  assert.equal(wordFor("freeze", { kind: "account", name: "acct-7" }), "acct-7");
  assert.equal(wordFor("thaw", { kind: "all" }), "thaw all");
  assert.equal(nameTarget({ kind: "model", name: "gpt" }), "calls of the model gpt");
});

test("an account is frozen by its own freeze, by that of all, or by both", () => {
  const own = { kind: "account", name: "a" } as const;
  assert.deepEqual(freezesOf([{ kind: "account", name: "b" }, { kind: "model", name: "a" }], "a"), []);
  assert.deepEqual(freezesOf([own], "a"), [own]);
  assert.deepEqual(freezesOf([{ kind: "all" }, own], "a"), [{ kind: "all" }, own]);
});

test("a name that nothing has is a warning", async () => {
  answers(200, { freezes: [], unknown: [{ kind: "model", name: "gtp" }] });
  const change = await changeFreeze("freeze", { kind: "model", name: "gtp" });
  assert.equal(change.isWarning, true);
  assert.match(change.text, /mistyped/);
});

test("a change that is not stored holds with a warning", async () => {
  answers(507, { status: 507, code: "not_stored", detail: "the disk is full", help: "" });
  assert.equal((await changeFreeze("freeze", { kind: "all" })).isWarning, true);
});

test("a refusal stays a failure", async () => {
  answers(403, { status: 403, code: "forbidden", detail: "no", help: "" });
  await assert.rejects(changeFreeze("thaw", { kind: "all" }), { code: "forbidden" });
});
