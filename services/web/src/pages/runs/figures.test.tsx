/** Tests that addresses from runs lead only where the configuration says, and what is shown of costs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { Cost, pullRequestLink, traceLink } from "./figures";

test("a pull request is a link only at https and the configured host", () => {
  assert.equal(pullRequestLink("https://github.com/a/b/pull/1", "github.com")?.host, "github.com");
  const others = [
    "http://github.com/a", "https://github.com.evil.example/a", "https://github.com@evil.example/", "https://x:y@github.com/",
    "https://github.com:8443/a", "javascript:alert(1)//github.com", "https://GITHUB.com.evil.example", "",
  ];
  for (const address of others) assert.equal(pullRequestLink(address, "github.com"), null, address);
  assert.equal(pullRequestLink("https://github.com/a", null), null);
});

test("a trace's id cannot leave its place in the template", () => {
  const template = "https://langfuse.example/trace/{trace}";
  assert.equal(traceLink(template, "a/../b?c")?.href, "https://langfuse.example/trace/a%2F..%2Fb%3Fc");
  assert.equal(traceLink(template, "$&")?.href, "https://langfuse.example/trace/%24%26");
  assert.equal(traceLink(null, "a"), null);
  assert.equal(traceLink("javascript:{trace}", "alert(1)"), null);
});

const text = (html: string) => html.replace(/<[^>]+>/g, "");

test("a cost without prices is not a zero", () => {
  const receipts = { count: 2, cost: "0.00", credits: 0, unpriced: 2 };
  assert.equal(text(renderToStaticMarkup(<Cost receipts={receipts} />)), "no price");
  assert.match(renderToStaticMarkup(<Cost receipts={{ ...receipts, unpriced: 1 }} />), /1 receipt without a price/);
});
