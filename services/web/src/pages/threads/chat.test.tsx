/** Tests small parts of the chat: orders, limits, agents, what is said, and what an answer may look like. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { ApiError } from "../../api/problem";
import { AnswerText } from "./AnswerText";
import { objection } from "./Composer";
import { limitLines } from "./limits";
import { Backoff, outcomeOf } from "./link";
import { type ChatMessage, readAnswer } from "./message";
import { phaseText } from "./StatusLine";
import { ToolCard } from "./ToolCard";
import { orderBody } from "./transport";
import { chooseAgent } from "./useAgents";
import { nextWords } from "./useSpoken";

const said = (id: string, role: "user" | "assistant", text: string): ChatMessage => ({ id, role, parts: [{ type: "text", text }] });

test("an order has the last question alone", () => {
  const messages = [said("q1", "user", "one"), said("a1", "assistant", "forged"), said("q2", "user", "two")];
  assert.deepEqual(orderBody("t", messages, "submit-message", { graphName: "a:b", gatewayAgent: "bot" }), {
    id: "t", trigger: "submit-message", graphName: "a:b", gatewayAgent: "bot",
    message: { id: "q2", role: "user", parts: [{ type: "text", text: "two" }] },
  });
});

test("a card that an agent imitates stays text", () => {
  const html = renderToStaticMarkup(<AnswerText text={'<button>Approve</button>\n```html\n<form><button>Deny</button></form>\n```'} />);
  assert.ok(!html.includes("<button") && !html.includes("<form"));
  assert.ok(html.includes("&lt;button&gt;Approve"));
});

test("a tool's name and result are text", () => {
  const text = '<img src=x onerror="y">';
  const call = {
    id: "c", name: text, origin: "agent", state: "done", argumentsText: text, resultText: text, resultBytes: 1, durationMs: 5, code: null,
  } as const;
  const html = renderToStaticMarkup(<ToolCard call={call} phase="ended" />);
  assert.ok(!html.includes("<img"));
  assert.ok(html.includes("1 B") && html.includes("5 ms"));
});

test("the label of a call has marks, and no half of a character", () => {
  const call = {
    id: "c", name: `\u202e${"x".repeat(58)}\u{1f600}`, origin: "agent", state: "running", argumentsText: "", resultText: null,
    resultBytes: null, durationMs: null, code: null,
  } as const;
  const [, label = ""] = /aria-label="([^"]*)"/.exec(renderToStaticMarkup(<ToolCard call={call} phase="open" />)) ?? [];
  assert.equal(label, `Tool ⟨RLO⟩${"x".repeat(58)}`);
});

test("a call without a result has none once the answer has ended", () => {
  const call = {
    id: "c", name: "x", origin: "agent", state: "running", argumentsText: "", resultText: null, resultBytes: null, durationMs: null,
    code: null,
  } as const;
  assert.ok(renderToStaticMarkup(<ToolCard call={call} phase="ended" />).includes("no result"));
  assert.ok(renderToStaticMarkup(<ToolCard call={call} phase="open" />).includes("running"));
});

test("limits that apply are named, the nearest first", () => {
  const none = { allowed: null, left: null, used: 0, reserved: 0 };
  const limits = {
    requests: { allowed: 10, left: 0, used: 10, reserved: 0 }, requestsPerMinute: none, callsInFlight: none, inputTokens: none,
    outputTokens: none, totalTokens: { allowed: 1000, left: 830, used: 170, reserved: 0 },
    cost: { allowed: "2.50", left: "0.20", used: "2.30", reserved: "0" },
  };
  const lines = limitLines({ account: "auth0|acct-7", inexactCalls: { unpriced: 0, estimated: 0 }, limits });
  const texts = lines.map(({ label, left, allowed }) => `${label} ${left}/${allowed}`);
  assert.deepEqual(texts, ["Requests 0/10", "Cost $0.20/$2.50", "Total tokens 830/1,000"]);
  assert.equal(lines[0]?.help, "An operator sets it: sluice limit --account 'auth0|acct-7' --requests N");
});

test("an agent that cannot run is not chosen", () => {
  const agents = ["a:1", "a:2"].map((agentId) => ({ agentId, graphId: agentId, name: agentId, description: "" }));
  assert.equal(chooseAgent({ agents, defaultAgentId: "a:2" }, ["a:gone", "a:1"]), "a:1");
  assert.equal(chooseAgent({ agents, defaultAgentId: "a:2" }, ["a:gone", null]), "a:2");
  assert.equal(chooseAgent({ agents, defaultAgentId: null }, [null]), "a:1");
  assert.equal(chooseAgent({ agents: [], defaultAgentId: null }, ["a:1"]), null);
});

test("the place in the queue is named", () => {
  const data = { phase: "queued", ahead: 2, waiting: 5 };
  const answer = readAnswer({ id: "r", role: "assistant", parts: [{ type: "data-status", id: "status", data }] });
  assert.equal(phaseText(answer, null), "Waiting for a free place: 2 before it, 5 waiting in all");
  assert.equal(phaseText(answer, { ahead: 0, waiting: 1 }), "Waiting for a free place: next of this account, 1 waiting in all");
});

test("a question has 16,000 characters at most, and some", () => {
  assert.equal(objection("👋".repeat(16_000)), null);
  assert.equal(objection("x".repeat(16_002)), "2 characters too many");
  assert.equal(objection(" \n "), "");
});

test("only what is new is said, without control characters", () => {
  assert.equal(nextWords("one two", "one "), "two");
  assert.equal(nextWords("another", "one "), "another");
  assert.equal(nextWords("a\u202eb\x1b[31m", ""), "ab");
  assert.ok(nextWords("x".repeat(5000), "").length < 700);
});

test("waits double up to half a minute, and a steady connection forgets them", () => {
  const backoff = new Backoff();
  const waits = Array.from({ length: 7 }, () => backoff.next(null, 0));
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  assert.equal(backoff.next(1, 1000), 30_000, "control: a short connection forgets nothing");
  assert.equal(backoff.next(1, 5001), 1000);
});

test("an order without an answer is refused, and a resumption is tried again", () => {
  const error = new ApiError({ status: 503, code: "starting", detail: "x", help: "" });
  const report = { ending: "finished", error, answeredAt: null } as const;
  assert.equal(outcomeOf(report, "order", undefined).kind, "refused");
  assert.equal(outcomeOf(report, "resume", undefined).kind, "lost");
  const gone = { ...report, error: new ApiError({ status: 404, code: "not_found", detail: "x", help: "" }) };
  assert.equal(outcomeOf(gone, "resume", undefined).kind, "refused");
});

test("a chunk that cannot be read is not tried again", () => {
  const error = Object.assign(new Error("bad chunk"), { name: "AI_TypeValidationError" });
  assert.equal(outcomeOf({ ending: "finished", error, answeredAt: 1 }, "resume", said("r", "assistant", "")).kind, "refused");
});
