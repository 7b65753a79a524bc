/** Tests how sessions of a gateway's agent are named, where they lead, and when they are asked about again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type GatewaySession, sessionKey, sessionLink, sessionSeconds, sessionsLink } from "./sessions";

const session: GatewaySession = {
  session: "agent:bot:x", account: "a", stateKey: "chat 1", question: "Why is the sky blue?", runs: 2, cost: "0.0123", lastRun: "r/1",
  state: "running", createdAt: "2026-11-27T10:00:00Z", changedAt: "2026-11-27T10:00:00Z",
};

test("a session of a thread leads to the chat, and another one to its last run", () => {
  const chat = { to: "/chat/chat%201", text: "Why is the sky blue?", target: "Chat chat 1" };
  const run = { to: "/sandbox/r%2F1", text: "Why is the sky blue?", target: "Run r/1" };
  assert.deepEqual(sessionLink(session, "a"), chat);
  assert.deepEqual(sessionLink({ ...session, stateKey: null }, "a"), run);
});

test("a thread of another account is not in the chat", () => {
  assert.deepEqual(["b", null].map((own) => sessionLink(session, own).to), ["/sandbox/r%2F1", "/sandbox/r%2F1"]);
});

test("a session without a question has the name of its thread, or its own", () => {
  const texts = [{ question: null }, { question: " \n" }, { question: null, stateKey: null }];
  assert.deepEqual(texts.map((of) => sessionLink({ ...session, ...of }, "a").text), ["chat 1", "chat 1", "agent:bot:x"]);
});

test("sessions of two accounts with one name are two rows", () => {
  assert.notEqual(sessionKey(session), sessionKey({ ...session, account: "b" }));
});

test("sessions are asked about more often until their runs have ended", () => {
  const of = (...states: string[]) => sessionSeconds(states.map((state) => ({ state })), 30);
  assert.deepEqual([of(), of("succeeded", "failed"), of("succeeded", "queued"), of("settling"), of("odd")], [30, 30, 3, 3, 30]);
});

test("the address has the cursor of a page", () => {
  assert.deepEqual([sessionsLink(null), sessionsLink("17.r-1&x")], ["?tab=sessions", "?tab=sessions&cursor=17.r-1%26x"]);
});
