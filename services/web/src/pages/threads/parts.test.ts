/** Tests what is shown of an answer's parts, of its text, and of what an agent writes on its way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { splitFences } from "./AnswerText";
import type { ChatMessage } from "./message";
import { type ToolCall, viewParts } from "./parts";
import { type Progress, ProgressText } from "./progress";

const view = (...parts: unknown[]) => viewParts({ id: "r", role: "assistant", parts: parts as ChatMessage["parts"] });
const tool = (id: string, output?: unknown) => ({
  type: "dynamic-tool", toolCallId: id, toolName: "bash", input: { command: "ls" }, output,
  state: output === undefined ? "input-available" : "output-available",
});
const call = (...parts: unknown[]): ToolCall => {
  const found = view(...parts).find((part) => part.kind === "tool");
  assert.ok(found?.kind === "tool");
  return found.call;
};

test("addresses that are not of the web are left out", () => {
  for (const url of ["javascript:alert(1)", "data:text/html,<b>", " javascript:x", "vbscript:x", "blob:x", "/relative", ""]) {
    assert.deepEqual(view({ type: "source-url", sourceId: "s", url, title: "Safe" }).map(({ kind }) => kind), ["leftOut"], url);
    assert.deepEqual(view({ type: "file", url, mediaType: "image/png" }).map(({ kind }) => kind), ["leftOut"], url);
  }
});

test("an address of the web is a link that names its host", () => {
  const link = { kind: "link", title: "Bank", href: "https://xn--pple-43d.com/", host: "xn--pple-43d.com" };
  assert.deepEqual(view({ type: "source-url", sourceId: "s", url: "https://аpple.com", title: "Bank" }), [link]);
});

test("a call has its arguments, its result and the result's size", () => {
  assert.deepEqual([call(tool("c")).state, call(tool("c")).argumentsText], ["running", '{\n  "command": "ls"\n}']);
  const done = call(tool("c", "grüße"));
  assert.deepEqual([done.state, done.origin, done.resultText, done.resultBytes], ["done", "agent", "grüße", 7]);
  const failed = call(tool("c", { error: "no such file" }));
  assert.deepEqual([failed.state, failed.resultText], ["failed", "no such file"]);
});

test("a host tool has its state from the server's part", () => {
  const data = (state: string) => ({ type: "data-host-tool", id: "host-1", data: { toolCallId: "host-1", callId: "1", state } });
  assert.deepEqual([call(tool("host-1"), data("waiting")).state, call(tool("host-1"), data("waiting")).origin], ["waiting", "host"]);
  const done = call(tool("host-1", { state: "done", resultBytes: 11, durationMs: 5 }), data("executing"));
  assert.deepEqual([done.state, done.resultBytes, done.durationMs, done.resultText], ["done", 11, 5, null]);
  const denied = call(tool("host-1", { state: "denied", error: "approval_denied" }));
  assert.deepEqual([denied.state, denied.code], ["denied", "approval_denied"]);
});

test("an agent's call is none of a host tool", () => {
  const data = { type: "data-host-tool", id: "host-1", data: { toolCallId: "host-1", state: "done" } };
  assert.equal(call(tool("c", { state: "done", resultBytes: 1 }), data).origin, "agent");
  assert.equal(call(tool("host-1", "text of an agent")).origin, "agent");
});

test("parts that are not known show nothing", () => {
  assert.deepEqual(view({ type: "step-start" }, { type: "data-status", data: {} }, { type: "text", text: "" }, { type: "custom" }), []);
});

const show = (text: string) => splitFences(text).map((piece) => (piece.kind === "code" ? `<${piece.language}|${piece.text}>` : piece.text));

const CASES: [string, string, string[]][] = [
  ["text alone", "# a *b*\n\n[x](y)", ["# a *b*\n\n[x](y)"]],
  ["code with a language", "a\n```rust\nfn x() {\n}\n```\nb", ["a", "<rust|fn x() {\n}>", "b"]],
  ["tildes", "~~~\nx\n~~~", ["<|x>"]],
  ["a fence that is not closed", "a\n```js\nlet", ["a", "<js|let>"]],
  ["a shorter fence inside", "````\n```\nx\n```\n````", ["<|```\nx\n```>"]],
  ["another fence inside", "```\n~~~\n```", ["<|~~~>"]],
  ["code in a line", "use ```x``` here", ["use ```x``` here"]],
  ["ends of lines of Windows", "```\r\nx\r\n```\r\ny", ["<|x>", "y"]],
  ["spaces of a first line", "  a\n  b", ["  a\n  b"]],
  ["nothing", "", []],
];

for (const [name, text, shown] of CASES) test(`finds ${name}`, () => assert.deepEqual(show(text), shown));

const later = () => new Promise((resolve) => setTimeout(resolve, 150));
const piece = (type: string, data: object) => ({ type, data });

test("pieces are published in a batch, and only their end is kept", async () => {
  const published: Progress[] = [];
  const progress = new ProgressText((next) => published.push(next));
  for (let count = 0; count < 3000; count += 1) progress.read(piece("data-progress", { text: "x" }));
  progress.read(piece("data-progress", { text: "end" }));
  progress.read(piece("data-missed", { count: 4 }));
  progress.read(piece("data-status", { text: "no progress" }));
  await later();
  assert.equal(published.length, 1);
  assert.deepEqual([published[0]?.text.length, published[0]?.text.slice(-4), published[0]?.missed], [2000, "xend", 4]);
});

test("another answer begins with nothing", async () => {
  const published: Progress[] = [];
  const progress = new ProgressText((next) => published.push(next));
  progress.read(piece("data-progress", { text: "old" }));
  progress.clear();
  progress.read(piece("data-progress", { text: "new" }));
  await later();
  assert.deepEqual(published, [{ text: "", missed: 0 }, { text: "new", missed: 0 }]);
});
