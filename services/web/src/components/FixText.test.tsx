/** Tests how messages with commands are shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { FixText, splitCode } from "./FixText";

test("commands stand between backticks", () => assert.deepEqual(splitCode("run `a b` or `c`"), ["run ", "a b", " or ", "c", ""]));

test("a lonely backtick stays text", () => assert.deepEqual(splitCode("a `b` c`d"), ["a ", "b", " c`d"]));

test("a quoted script stays text", () => {
  const html = renderToStaticMarkup(<FixText text="set `<script>x</script>`" />);
  assert.equal(html.includes("<script>"), false);
  assert.match(html, /<code>.*&lt;script&gt;/);
});
