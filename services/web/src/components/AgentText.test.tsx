/** Tests that texts of agents become text nodes and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { AgentText, cutAt } from "./AgentText";

test("HTML stays text", () => {
  const html = renderToStaticMarkup(<AgentText text={'<script>x</script><img src=x onerror="y">'} />);
  assert.ok(!html.includes("<script") && !html.includes("<img"));
  assert.ok(html.includes("&lt;script&gt;"));
});

test("a link is inert until it is opened, and names its host", () => {
  const html = renderToStaticMarkup(<AgentText text="https://a.example/b" />);
  assert.ok(!html.includes("href"));
  assert.ok(html.includes("open the link to a.example"));
});

test("a line of 1 MiB is cut, and more is offered", () => {
  const html = renderToStaticMarkup(<AgentText text={"x".repeat(1 << 20)} />);
  assert.ok(html.length < 25_000);
  assert.ok(html.includes("1,028,576 characters follow"));
});

test("a cut does not divide a character", () => {
  assert.equal(cutAt("ab👋", 3), "ab");
  assert.equal(cutAt("ab👋", 4), "ab👋");
});

test("bytes that the server left out are named", () => {
  assert.ok(renderToStaticMarkup(<AgentText text="x" cutBytes={2048} />).includes("2.0 KiB more were not stored"));
});
