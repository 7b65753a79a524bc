/** Tests that arguments of agents are shown as text, all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { Arguments } from "./Card";
import type { Approval } from "./waiting";

const call = (text: string | null): Approval => ({
  account: "a", arguments: text, askedAt: "2026-11-27T10:00:00Z", callId: "c", decideBy: null, decidedBy: null, effect: "writes",
  runId: "r", state: "waiting", tool: "t",
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

test("removed arguments are said to be removed", () => assert.match(show(null), /were removed/));
