/** Tests that no character of an agent's text acts, hides or covers other text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findMarks, visibleText } from "./marks";

function show(text: string, isExact = false): string {
  return findMarks(text, isExact)
    .map((piece) => (piece.kind === "text" ? piece.text : `<${piece.label}>`))
    .join("");
}

const CASES: [string, string, string][] = [
  ["plain text", "plain\ttext\n", "plain\ttext\n"],
  ["letters of all scripts and emoji", "Grüße, 你好 👋🏽 👩‍💻 👨‍👩‍👧", "Grüße, 你好 👋🏽 👩‍💻 👨‍👩‍👧"],
  ["colours of terminals", "\x1b[31mred\x1b[0m", "<ESC[31m>red<ESC[0m>"],
  ["title of a window", "\x1b]0;title\x07after", "<ESC]0;title.>after"],
  ["clipboard (OSC 52)", "\x1b]52;c;ZXZpbA==\x1b\\after", "<ESC]52;c;ZXZpbA==.\\>after"],
  ["hyperlink (OSC 8)", "\x1b]8;;https://evil.example\x1b\\x", "<ESC]8;;https://evil.exam…>x"],
  ["device control", "\x1bP+q544e\x1b\\after", "<ESCP+q544e.\\>after"],
  ["reset", "\x1bcreset", "<ESCc>reset"],
  ["C1 control sequence", "\u009b31mc1", "<U+009B31m>c1"],
  ["unfinished string ends with its line", "\x1b]0;unfinished\nnext", "<ESC]0;unfinished>\nnext"],
  ["ESC at the end", "end\x1b", "end<ESC>"],
  ["C0 and DEL", "a\0b\x07c\x08d\x7f", "a<NUL>b<BEL>c<BS>d<DEL>"],
  ["carriage return alone", "over\rwritten", "over<CR>written"],
  ["carriage return of a line's end", "one\r\ntwo", "one\ntwo"],
  ["override of direction", "admin\u202enimda\u2066", "admin<RLO>nimda<LRI>"],
  ["marks of direction", "\u200e\u200f\u061c", "<LRM><RLM><U+061C>"],
  ["zero width", "a\u200bb\u200cc\u200dd\ufeffe\u2060f\u00adg", "a<ZWSP>b<ZWNJ>c<ZWJ>d<BOM>e<WJ>f<SHY>g"],
  ["fillers that look empty", "\u3164\u115f", "<U+3164><U+115F>"],
  ["tags", "x\u{e0041}", "x<U+E0041>"],
  ["line separator", "a\u2028b", "a<U+2028>b"],
  ["blanks between words and parts of emoji", "1\u00a0000\u3000字 ❤\ufe0f 1\ufe0f\u20e3", "1\u00a0000\u3000字 ❤\ufe0f 1\ufe0f\u20e3"],
  ["a row of one blank", `a${"\u00a0".repeat(3000)}b`, "a<3000× U+00A0>b"],
  ["a row of several blanks", `a${"\u2003\u2800".repeat(50)}b`, "a<100× blank>b"],
  ["a row of one invisible character", `a${"\u200b".repeat(9)}\u2060`, "a<9× ZWSP><WJ>"],
  ["selectors without an emoji", "a\ufe0f\u180b\u{e0100}", "a<U+FE0F><U+180B><U+E0100>"],
  ["characters that Unicode keeps free", "\u2065\u206a\ufff0\u{e0080}\u{e01f0}", "<U+2065><U+206A><U+FFF0><U+E0080><U+E01F0>"],
  ["lone surrogate", "a\ud800b", "a<U+D800>b"],
];

for (const [name, hostile, shown] of CASES) {
  test(`shows ${name}`, () => assert.equal(show(hostile), shown));
}

const EXACT: [string, string, string][] = [
  ["nothing of plain text", "plain\ttext\n  Grüße, 你好 👋🏽", "plain\ttext\n  Grüße, 你好 👋🏽"],
  ["each blank", "a\u00a0b\u3000c\u2800\u2800", "a<U+00A0>b<U+3000>c<2× U+2800>"],
  ["joiners and selectors of emoji", "👩\u200d💻 ❤\ufe0f\ufe0f", "👩<ZWJ>💻 ❤<2× U+FE0F>"],
  ["spaces that are more than an indentation", `a${" ".repeat(81)}b${" ".repeat(80)}c`, `a<81× U+0020>b${" ".repeat(80)}c`],
];

for (const [name, hostile, shown] of EXACT) {
  test(`marks ${name} for who decides`, () => assert.equal(show(hostile, true), shown));
}

test("marks become words where no elements can be", () => {
  assert.equal(visibleText("a\u202eb\x1b[2J"), "a⟨RLO⟩b⟨ESC[2J⟩");
});

test("a pile of combining marks is bounded", () => {
  assert.equal(show(`e${"\u0301".repeat(5000)}x`), `e${"\u0301".repeat(4)}<+4996>x`);
  assert.equal(show("e\u0301"), "e\u0301");
});

test("a long hostile text is divided in linear time", () => {
  const started = performance.now();
  findMarks("\x1b]".repeat(50_000));
  findMarks("\u0301".repeat(200_000));
  findMarks("\u00a0".repeat(200_000), true);
  findMarks("\u00a0\u00a0\u200b ".repeat(50_000), true);
  assert.ok(performance.now() - started < 10_000);
});
