// Counts the texts in proxy/tests/golden/tokens.jsonl with real tokenisers and writes the counts beside them. A unit test
// (proxy/src/usage/estimate.rs) then holds Sluicegate's bound and estimate against them. To add a text, add a line with its
// `kind` and `text`. Not part of any build: the counts are checked in.
//
//   npm install --no-package-lock && node count.mjs
//
// The tokenisers are of four families: OpenAI's o200k and cl100k (bytes, merged), Claude's published one (bytes, merged,
// after Unicode's compatibility normalisation), Llama 2's (SentencePiece, with bytes for what it does not know), Llama 3's.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";
import llama2 from "llama-tokenizer-js";
import llama3 from "llama3-tokenizer-js";

const { getTokenizer } = createRequire(import.meta.url)("@anthropic-ai/tokenizer");
const claude = getTokenizer();

const COUNTERS = {
  o200k: (text) => o200k(text, { disallowedSpecial: new Set() }),
  cl100k: (text) => cl100k(text, { disallowedSpecial: new Set() }),
  claude: (text) => claude.encode(text.normalize("NFKC"), "all").length,
  llama2: (text) => llama2.encode(text, false, true).length,
  llama3: (text) => llama3.encode(text, { bos: false, eos: false }).length,
};

const golden = new URL("../../proxy/tests/golden/tokens.jsonl", import.meta.url);
const lines = readFileSync(golden, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const counted = lines.map(({ kind, text }) => {
  const tokens = Object.fromEntries(Object.entries(COUNTERS).map(([name, count]) => [name, count(text)]));
  return { kind, bytes: Buffer.byteLength(text), chars: [...text].length, tokens, text };
});
writeFileSync(golden, counted.map((line) => JSON.stringify(line) + "\n").join(""));
for (const { kind, bytes, tokens } of counted) {
  console.log(kind.padEnd(18), String(bytes).padStart(5), ...Object.values(tokens).map((n) => (bytes / n).toFixed(2).padStart(6)));
}

// How far compatibility normalisation can stretch a character, in bytes of UTF-8, by blocks of 64. Decomposition counts:
// what comes before or after a character can keep its parts from being composed again; only Hangul always is.
const stretched = [];
for (let block = 2; block < 0x110000 / 64; block += 1) {
  const characters = Array.from({ length: 64 }, (_, i) => block * 64 + i)
    .filter((code) => (code < 0xd800 || code > 0xdfff) && (code < 0xac00 || code > 0xd7a3))
    .map((code) => String.fromCodePoint(code));
  const longest = Math.max(0, ...characters.map((character) => Buffer.byteLength(character.normalize("NFKD"))));
  if (characters.some((character) => Buffer.byteLength(character) < longest)) {
    stretched.push(`${(block * 64).toString(16)}\t${longest}\n`);
  }
}
writeFileSync(new URL("../../proxy/tests/golden/stretched.tsv", import.meta.url), stretched.join(""));
