/** Tests the bars of limits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { UseBars } from "./UseBar";
import { type LimitRow } from "./limits";

const row: LimitRow = {
  id: "requests", label: "Requests", allowed: "10", used: "4", reserved: "5", left: "1", usedShare: 0.4, reservedShare: 0.5, share: 0.9,
};

test("a bar has a used and a reserved part, and the same in words", () => {
  const html = renderToStaticMarkup(<UseBars rows={[row]} />);
  assert.match(html, /class="use-used" width="40"/);
  assert.match(html, /class="use-reserved" x="40" y="2" width="50"/);
  assert.match(html, /4 used, 5 reserved, 1 left of 10/);
  assert.match(html, /nearly used up/);
  assert.equal(/style=/.test(html), false);
});

test("a use without a limit is in the table alone", () => {
  const free = { ...row, allowed: null, left: null, usedShare: null, reservedShare: null, share: null };
  const html = renderToStaticMarkup(<UseBars rows={[free]} />);
  assert.equal(html.includes("<svg"), false);
  assert.match(html, /<th scope="row">Requests<\/th>/);
  assert.match(html, /<td class="num">no limit<\/td>/);
});
