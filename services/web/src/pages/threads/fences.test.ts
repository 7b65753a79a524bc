/** Tests that fenced code is found, and nothing else of Markdown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { splitFences } from "./fences";

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
