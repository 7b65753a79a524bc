/** Tests that a command is whole, and its button has a name without marks of its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { CopyText } from "./CopyText";

test("the button of a command names it as text", () => {
  const html = renderToStaticMarkup(<CopyText text={`sluice run \u202e${"x".repeat(70)}\u{1f600}`} />);
  assert.match(html, /aria-label="Copy sluice run ⟨RLO⟩x+"/);
  assert.equal(/\u202e/.test(html), false);
});
