/** Tests a conversation with the client of the AI SDK and a server that the tests play. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UIMessageChunk } from "ai";
import { ApiError } from "../../api/problem";
import type { ChatMessage } from "./message";
import { DONE, Played, START, STORED, words } from "./played";

test("an answer with its finish is complete", async () => {
  const played = new Played([[START, ...words("hello"), DONE]], []);
  assert.ok(played.session.send("Hi", "a:b"));
  await played.until("idle");
  assert.deepEqual(played.texts(), ["Hi", "hello"]);
  assert.equal(played.ended, 1);
});

test("an order names the agent of the gateway, and none without one", async () => {
  const played = new Played([[START, ...words("hello"), DONE], [START, ...words("hello"), DONE]], []);
  played.session.send("Hi", "a:b", "research-bot");
  await played.until("idle");
  played.session.send("Hi", "a:b");
  await played.until("idle");
  assert.deepEqual(played.orders.map(({ body }) => body), [{ graphName: "a:b", gatewayAgent: "research-bot" }, { graphName: "a:b" }]);
});

test("a second question during an answer is not taken", async () => {
  const played = new Played([[START, ...words("hello"), DONE]], []);
  assert.ok(played.session.send("Hi", null));
  assert.ok(!played.session.send("Hi", null));
  await played.until("idle");
  assert.equal(played.orders.length, 1);
});

test("a stream that ends without finish is resumed, and nothing is doubled", async () => {
  const played = new Played([[START, ...words("hel")]], [[START, ...words("hello"), DONE]]);
  played.session.send("Hi", null);
  await played.until("lost");
  await played.until("idle");
  assert.deepEqual(played.texts(), ["Hi", "hello"]);
  assert.equal(played.resumed, 1);
});

test("a broken connection is resumed", async () => {
  const played = new Played(["broken"], [[START, ...words("half and whole"), DONE]]);
  played.session.send("Hi", null);
  await played.until("lost");
  played.session.retry();
  await played.until("idle");
  assert.deepEqual(played.texts(), ["Hi", "half and whole"]);
});

test("an answer that ended meanwhile is read from the store", async () => {
  const played = new Played([[START, ...words("hel")]], ["none"]);
  played.session.send("Hi", null);
  await played.until("lost");
  played.session.retry();
  await played.until("idle");
  assert.equal(played.texts().at(-1), "stored");
});

test("no active answer leaves the conversation ready", async () => {
  const played = new Played([], ["none"], [STORED]);
  played.session.resume();
  await played.until("idle");
  assert.deepEqual(played.texts(), ["stored"]);
});

const busy = new ApiError({ status: 409, code: "thread_busy", detail: "busy", help: "wait" });

test("a refused question is sent again under its id", async () => {
  const played = new Played([busy, [START, ...words("hello"), DONE]], []);
  played.session.send("Hi", null);
  await played.until("refused");
  played.session.retry();
  await played.until("idle");
  assert.equal(played.orders[0]?.question, played.orders[1]?.question);
  assert.deepEqual(played.texts(), ["Hi", "hello"]);
});

test("a question is handed back if the session has ended", async () => {
  const played = new Played([new ApiError({ status: 401, code: "unauthenticated", detail: "x", help: "" }), busy], []);
  played.session.send("Hi", null);
  await played.until("refused");
  assert.deepEqual(played.unsent, ["Hi"]);
  played.session.retry();
  await played.until("live");
  await played.until("refused");
  assert.deepEqual(played.unsent, ["Hi"], "control: another refusal keeps it here");
});

test("a refused question is taken back", async () => {
  const played = new Played([busy], []);
  played.session.send("Hi", null);
  await played.until("refused");
  assert.equal(played.session.takeBack(), "Hi");
  assert.deepEqual(played.texts(), []);
});

test("two regenerations have two ids, and a refused one keeps the answer", async () => {
  const question: ChatMessage = { id: "q", role: "user", parts: [{ type: "text", text: "Hi" }] };
  const played = new Played([busy, [{ ...START, messageId: "run-2" }, ...words("anew"), DONE]], [], [question, STORED]);
  played.session.regenerate("a:b");
  await played.until("refused");
  assert.deepEqual(played.texts(), ["Hi", "stored"]);
  played.session.takeBack();
  played.session.regenerate("a:b");
  played.session.regenerate("a:b");
  await played.until("idle");
  const ids = played.orders.map(({ body }) => (body as { requestId: string }).requestId);
  assert.equal(new Set(ids).size, 2);
  assert.deepEqual(played.texts(), ["Hi", "anew"]);
});

test("the error of a run ends its answer, and an interruption does not", async () => {
  const ending = (code: string): UIMessageChunk[] => [
    START, { type: "data-error", data: { code, message: "x" } }, { type: "error", errorText: "x" },
  ];
  const played = new Played([ending("interrupted")], [ending("timeout")]);
  played.session.send("Hi", null);
  await played.until("lost");
  played.session.retry();
  await played.until("idle");
  assert.equal(played.ended, 1);
});

test("an answer that cannot be read is followed again, and not ordered again", async () => {
  const odd = { type: "text-delta", id: "unknown", delta: "x" } as const;
  const played = new Played([[START, odd]], [[START, ...words("hello"), DONE]]);
  played.session.send("Hi", null);
  await played.until("refused");
  played.session.retry();
  await played.until("idle");
  assert.deepEqual([played.orders.length, played.texts().at(-1)], [1, "hello"]);
});

test("to leave asks for no stop, and a stop asks the server first", async () => {
  const open: UIMessageChunk[] = [START, { type: "data-status", id: "status", data: { phase: "running" } }];
  const played = new Played([open], []);
  played.session.send("Hi", null);
  await played.until("lost");
  played.session.close();
  assert.equal(played.stops, 0);
  const stopped = new Played([open], [[...open, { type: "data-status", id: "status", data: { phase: "cancelled" } }]]);
  stopped.session.send("Hi", null);
  await stopped.until("lost");
  await stopped.session.stop();
  await stopped.until("idle");
  assert.equal(stopped.stops, 1);
});

test("a hidden tab closes its stream, and continues when it is shown", async () => {
  const played = new Played([[START, ...words("hel")]], [[START, ...words("hello"), DONE]]);
  played.session.send("Hi", null);
  await played.until("lost");
  played.session.hide();
  played.session.retry();
  await played.until("paused");
  assert.equal(played.resumed, 0);
  played.session.show();
  await played.until("idle");
  assert.equal(played.texts().at(-1), "hello");
});
