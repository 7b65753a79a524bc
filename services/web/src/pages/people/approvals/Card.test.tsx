/** Tests that arguments of agents are shown as text, all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { Arguments, Decision } from "./Card";
import type { Approval } from "./waiting";

const call = (text: string | null): Approval => ({
  account: "a", arguments: text, askedAt: "2026-11-27T10:00:00Z", callId: "c", decideBy: null, decidedBy: null, effect: "writes",
  gateway: null, gatewayAgent: null, runId: "r", state: "waiting", tool: "t",
});
const show = (text: string | null) => renderToStaticMarkup(<Arguments approval={call(text)} />);

test("markup and control characters of arguments stay text", () => {
  const html = show('{"body":"<img src=x onerror=alert(1)>\u202e\u001b[2J"}');
  assert.equal(html.includes("<img"), false);
  assert.equal(/[\u202e\u001b]/.test(html), false);
  assert.match(html, /RLO/);
});

test("the last of 32 KiB of arguments is shown", () => {
  const html = show(JSON.stringify({ list: Array.from({ length: 6_000 }, () => 1234), last: "the-end" }));
  assert.match(html, /the-end/);
  assert.equal(html.includes("Show more"), false);
});

test("a row of blanks in arguments is a mark with its count", () => {
  assert.match(show(JSON.stringify({ a: `x${"\u00a0".repeat(3000)}`, b: 1 })), /3000× U\+00A0/);
  assert.match(show(JSON.stringify({ a: `x${"\u2003".repeat(2)}` })), /2× U\+2003/);
  assert.match(show(JSON.stringify({ a: "❤\u2800\ufe0f" })), /U\+2800.*U\+FE0F/);
});

test("arguments that lines and their beginnings make long are shown whole", () => {
  const deep = `${"[".repeat(20)}${"1,".repeat(16_000)}"the-end"${"]".repeat(20)}`;
  const html = show(deep);
  assert.match(html, /the-end/);
  assert.equal(html.includes("Show more"), false);
});

/** Returns what a member sees first of a card. */
function card(args: string | null): string {
  return renderToStaticMarkup(<Decision approval={call(args)} onAsk={() => undefined} />);
}

test("a call is approved only with all arguments in sight", () => {
  assert.match(card('{"a":1}'), /Approve …/, "the control");
  const long = { a: "x".repeat(3_000), last: "the-end" };
  const many = { list: Array.from({ length: 30 }, () => 1), last: "the-end" };
  for (const args of [JSON.stringify(long), JSON.stringify(many)]) {
    const html = card(args);
    assert.equal(html.includes("the-end"), false);
    assert.match(html, /Show all arguments/);
    assert.equal(html.includes("Approve …"), false);
    assert.match(html, /Deny …/);
    assert.match(show(args), /the-end/, "the question has all of them");
  }
  assert.equal(card(null).includes("Approve …"), false, "removed arguments");
});

test("a command of a gateway's agent can be approved always, a call of a host tool cannot", () => {
  const ofGateway = { ...call('{"command":"make"}'), gateway: "coding", gatewayAgent: "research-bot" };
  const html = renderToStaticMarkup(<Decision approval={ofGateway} onAsk={() => undefined} />);
  assert.match(html, /data-verdict="always"/);
  assert.equal(card('{"a":1}').includes('data-verdict="always"'), false);
  const long = { ...ofGateway, arguments: JSON.stringify({ command: "x".repeat(3_000) }) };
  assert.equal(renderToStaticMarkup(<Decision approval={long} onAsk={() => undefined} />).includes("always"), false, "not in sight");
});

test("removed arguments are said to be removed", () => assert.match(show(null), /were removed/));
