/** Tests what people are shown of states and failures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { ApiError, readProblem } from "../api/problem";
import { Cost } from "../pages/runs/figures";
import { ErrorNote } from "./ErrorNote";
import { StateChip } from "./StateChip";
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

test("a cost without prices is not a zero", () => {
  const receipts = { count: 2, cost: "0.00", credits: 0, unpriced: 2 };
  assert.equal(text(renderToStaticMarkup(<Cost receipts={receipts} />)), "no price");
  assert.match(renderToStaticMarkup(<Cost receipts={{ ...receipts, unpriced: 1 }} />), /1 receipt without a price/);
});

test("one tab is chosen, and its panel is named after it", () => {
  const tabs = ["a", "b"].map((id) => ({ id, label: id.toUpperCase(), render: () => `panel ${id}` }));
  const html = renderToStaticMarkup(<Tabs label="Parts" tabs={tabs} shown="b" onShow={() => undefined} />);
  assert.match(html, /aria-selected="true"[^>]*>B</);
  assert.match(html, /tabindex="-1"[^>]*>A</);
  assert.ok(html.includes("panel b") && !html.includes("panel a"));
});
