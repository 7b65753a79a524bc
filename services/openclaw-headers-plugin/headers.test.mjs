import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_HEADERS, Refused, Sessions } from "./headers.js";

const TOKEN = "secret-of-a-run";
const set = (params, allowed = DEFAULT_HEADERS) => {
  const sessions = new Sessions();
  sessions.set(params, allowed);
  return sessions;
};

test("a session has its own headers, and another session has none", () => {
  const sessions = set({ sessionId: "a", headers: { "X-Run-Token": TOKEN } });
  assert.deepEqual(sessions.of("a"), { "x-run-token": TOKEN });
  assert.equal(sessions.of("b"), undefined);
  assert.equal(sessions.of("A"), undefined);
});

test("set replaces headers and clear removes them", () => {
  const sessions = set({ sessionId: "a", headers: { "x-run-token": "first" } });
  sessions.set({ sessionId: "a", headers: { "x-run-token": "second" } }, DEFAULT_HEADERS);
  assert.deepEqual(sessions.of("a"), { "x-run-token": "second" });
  assert.equal(sessions.clear({ sessionId: "a" }), true);
  assert.equal(sessions.of("a"), undefined);
  assert.equal(sessions.clear({ sessionId: "a" }), false);
});

test("invalid headers are refused, and no refusal contains a value", () => {
  const value = (text) => ({ sessionId: "a", headers: { "x-run-token": text } });
  const invalid = [
    undefined,
    null,
    [],
    "a",
    {},
    { sessionId: "a" },
    { sessionId: "", headers: { "x-run-token": TOKEN } },
    { sessionId: "a b", headers: { "x-run-token": TOKEN } },
    { sessionId: 1, headers: { "x-run-token": TOKEN } },
    { sessionId: "a".repeat(257), headers: { "x-run-token": TOKEN } },
    { sessionId: "a", headers: {} },
    { sessionId: "a", headers: [TOKEN] },
    { sessionId: "a", headers: null },
    { sessionId: "a", headers: { authorization: TOKEN } },
    { sessionId: "a", headers: { [`x-run-token\r\n${TOKEN}`]: "x" } },
    { sessionId: "a", headers: { "x-run-token": TOKEN, "X-Run-Token": TOKEN } },
    { sessionId: "a", headers: { "x-run-token": TOKEN }, more: 1 },
    { sessionId: "a", headers: JSON.parse(`{"__proto__":"${TOKEN}"}`) },
    value(""),
    value(` ${TOKEN}`),
    value(`${TOKEN}\r\nx-other: 1`),
    value(`${TOKEN}\n`),
    value(`${TOKEN}\u0000`),
    value(`${TOKEN}é`),
    value(7),
    value([TOKEN]),
    value(TOKEN.padEnd(8192 - "x-run-token".length, "x")),
  ];
  for (const params of invalid) {
    assert.throws(() => set(params), (error) => error instanceof Refused && !error.message.includes(TOKEN), `${params}`);
  }
  // The same with valid values.
  set(value(TOKEN));
  set(value("x".repeat(8191 - "x-run-token".length)));
});

test("a session may set only configured headers", () => {
  const params = { sessionId: "a", headers: { "x-account": "1", "x-run-token": TOKEN } };
  assert.throws(() => set(params), Refused);
  assert.deepEqual(set(params, ["x-account", "x-run-token"]).of("a"), params.headers);
});

test("the number of sessions with headers is limited", () => {
  const sessions = new Sessions();
  const add = (n) => sessions.set({ sessionId: `s${n}`, headers: { "x-run-token": TOKEN } }, DEFAULT_HEADERS);
  for (let n = 0; n < 4096; n += 1) add(n);
  assert.throws(() => add(4096), Refused);
  add(0);
  sessions.clear({ sessionId: "s0" });
  add(4096);
});
