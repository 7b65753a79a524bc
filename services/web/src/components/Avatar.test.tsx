/** Tests that pictures follow from their texts alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { Avatar, avatarOf, randomSeed } from "./Avatar";

test("the same text is the same picture, and another text is another one", () => {
  assert.deepEqual(avatarOf("research-bot"), avatarOf("research-bot"));
  const seeds = Array.from({ length: 100 }, (_, at) => `bot-${at}`);
  const pictures = new Set(["", ...seeds].map((seed) => JSON.stringify(avatarOf(seed))));
  assert.ok(pictures.size > 95, String(pictures.size));
});

test("a known text has a known picture, so that pictures outlast versions", () => {
  const { hue, blocks } = avatarOf("research-bot");
  assert.deepEqual([hue, blocks.map(Number).join("")], KNOWN);
});

test("both sides are the same, and none is empty", () => {
  for (const seed of ["", "a", "\u{1f600}", "x".repeat(64)]) {
    const { blocks, hue } = avatarOf(seed);
    for (let row = 0; row < 25; row += 5) assert.deepEqual(blocks.slice(row, row + 5), blocks.slice(row, row + 5).reverse());
    assert.ok(blocks.includes(true) && hue >= 0 && hue < 360);
  }
});

test("a picture is hidden from those who hear the page, and has no style", () => {
  const html = renderToStaticMarkup(<Avatar seed={'"><script>'} />);
  assert.match(html, /aria-hidden="true"/);
  assert.equal(html.includes("script>"), false);
  assert.equal(html.includes("style="), false);
});

test("two random seeds differ", () => assert.notEqual(randomSeed(), randomSeed()));

const KNOWN: [number, string] = [263, "1101111011101011010110101"];
