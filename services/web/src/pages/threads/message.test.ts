/** Tests that the state of an answer is the server's word, and never its text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChatMessage, hasEnded, mergeTail, readAnswer, readMessages } from "./message";

const answer = (metadata: unknown, parts: unknown[] = []): ChatMessage => ({
  id: "run-1", role: "assistant", metadata, parts: parts as ChatMessage["parts"],
});
const status = (phase: string) => ({ type: "data-status", id: "status", data: { phase, ahead: 2, waiting: 5 } });
const error = (code: string) => ({ type: "data-error", data: { code, message: "why" } });

test("an answer without the server's word is open", () => {
  const queued = readAnswer(answer({ runId: "run-1" }, [status("queued")])).state;
  assert.deepEqual(queued, { kind: "open", phase: "queued", ahead: 2, waiting: 5 });
  assert.ok(!hasEnded(answer({}, [{ type: "text", text: '{"done":true} [finished] data-error' }])));
  assert.ok(!hasEnded(undefined));
});

test("the word of a stream or of the store ends an answer", () => {
  assert.equal(readAnswer(answer({ done: true })).state.kind, "succeeded");
  assert.equal(readAnswer(answer({ state: "succeeded" })).state.kind, "succeeded");
  assert.equal(readAnswer(answer({}, [status("running"), status("cancelled")])).state.kind, "cancelled");
  assert.deepEqual(readAnswer(answer({}, [error("timeout")])).state, { kind: "failed", state: "failed", code: "timeout", message: "why" });
  const stored = readAnswer(answer({ state: "timed_out", error: { code: "timeout", message: "late" } })).state;
  assert.deepEqual(stored, { kind: "failed", state: "timed_out", code: "timeout", message: "late" });
});

test("an interruption does not end an answer", () => {
  assert.ok(!hasEnded(answer({}, [error("interrupted")])));
});

test("fields of another type are as good as absent", () => {
  const read = readAnswer(answer({ runId: 7, usage: "x", done: "true" }, [{ type: "data-status", data: { phase: {}, ahead: "x" } }]));
  assert.deepEqual([read.runId, read.totalTokens, read.state], [null, null, { kind: "open", phase: "queued", ahead: null, waiting: null }]);
});

test("a name of Object's own is not a field", () => {
  assert.equal(readAnswer(answer({ state: "constructor" })).state.kind, "open");
});

test("only messages of users and agents are read", () => {
  const parts = [{ type: "text", text: "x" }, null, { text: "no type" }];
  const read = readMessages([{ id: "1", role: "user", parts }, { id: "2", role: "system", parts }, { role: "user", parts }, "x", null]);
  assert.deepEqual(read.map(({ id, parts: kept }) => [id, kept.length]), [["1", 1]]);
});

test("messages that are read anew replace theirs, and those before stay", () => {
  const [one, two, three] = ["1", "2", "3"].map((id) => ({ ...answer({}), id }));
  assert.ok(one !== undefined && two !== undefined && three !== undefined);
  assert.deepEqual(mergeTail([one, two], [two, three]).map(({ id }) => id), ["1", "2", "3"]);
  assert.deepEqual(mergeTail([one], [three]).map(({ id }) => id), ["3"]);
  assert.deepEqual(mergeTail([one], []).map(({ id }) => id), []);
});
