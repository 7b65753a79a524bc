/** Tests what people are shown of states, failures, commands and lists. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { ApiError, readProblem } from "../api/problem";
import { CopyText } from "./CopyButton";
import { FixText, splitCode } from "./FixText";
import { ErrorNote } from "./Notes";
import { Offsets } from "./offsets";
import { StateChip } from "./StateChip";
import { StreamNote } from "./StreamNote";
import { Tabs } from "./Tabs";

const text = (html: string) => html.replace(/<[^>]+>/g, "");

test("a failure is shown with its code, its help and the age of what is below", () => {
  const error = new ApiError({ status: 503, code: "store_unavailable", detail: "the store is away", help: "start it" });
  const html = renderToStaticMarkup(<ErrorNote error={error} staleSince={0} onRetry={() => undefined} />);
  for (const part of ["Not available now", "the store is away", "start it", "store_unavailable", "not newer than", "Try again"]) {
    assert.ok(html.includes(part), part);
  }
});

test("an answer without problem details has a code, too", async () => {
  const error = await readProblem(new Response("<html>", { status: 502, headers: { "retry-after": "7" } }));
  assert.deepEqual([error.code, error.isTransient, error.retryAfterSeconds], ["http_502", true, 7]);
});

test("a state has a sign and a word beside its colour", () => {
  const html = renderToStaticMarkup(<StateChip state="timed_out" code="timeout" />);
  assert.equal(text(html), "✕ timed outtimeout");
});

test("one tab is chosen, and its panel is named after it", () => {
  const tabs = ["a", "b"].map((id) => ({ id, label: id.toUpperCase(), render: () => `panel ${id}` }));
  const html = renderToStaticMarkup(<Tabs label="Parts" tabs={tabs} shown="b" onShow={() => undefined} />);
  assert.match(html, /aria-selected="true"[^>]*>B</);
  assert.match(html, /tabindex="-1"[^>]*>A</);
  assert.ok(html.includes("panel b") && !html.includes("panel a"));
});

test("the button of a command names it as text", () => {
  const html = renderToStaticMarkup(<CopyText text={`sluice run \u202e${"x".repeat(70)}\u{1f600}`} />);
  assert.match(html, /aria-label="Copy sluice run ⟨RLO⟩x+"/);
  assert.equal(/\u202e/.test(html), false);
});

test("commands stand between backticks", () => assert.deepEqual(splitCode("run `a b` or `c`"), ["run ", "a b", " or ", "c", ""]));

test("a lonely backtick stays text", () => assert.deepEqual(splitCode("a `b` c`d"), ["a ", "b", " c`d"]));

test("a quoted script stays text", () => {
  const html = renderToStaticMarkup(<FixText text="set `<script>x</script>`" />);
  assert.equal(html.includes("<script>"), false);
  assert.match(html, /<code>.*&lt;script&gt;/);
});

test("a lost connection says why, and when it is tried again", () => {
  const error = new ApiError({ status: 503, code: "too_many_streams", detail: "too many streams are open", help: "" });
  const html = renderToStaticMarkup(<StreamNote state={{ kind: "lost", retryAt: Date.now() + 5_000, error }} onRetry={() => undefined} />);
  assert.match(html, /connection lost, again in 5 s/);
  assert.match(html, /too many streams are open/);
});

test("the rows that reach into the window are found", () => {
  const offsets = new Offsets([10, 20, 30, 40]);
  assert.equal(offsets.total, 100);
  assert.deepEqual(offsets.range(0, 5), [0, 1]);
  assert.deepEqual(offsets.range(15, 35), [1, 3]);
  assert.deepEqual(offsets.range(60, 500), [3, 4]);
  assert.deepEqual(offsets.range(-100, 0), [0, 1]);
});

test("an empty list has no rows", () => {
  assert.deepEqual(new Offsets([]).range(0, 100), [0, 0]);
});
