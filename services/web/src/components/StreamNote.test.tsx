/** Tests that a lost connection has a reason. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { ApiError } from "../api/problem";
import { StreamNote } from "./StreamNote";

test("a lost connection says why, and when it is tried again", () => {
  const error = new ApiError({ status: 503, code: "too_many_streams", detail: "too many streams are open", help: "" });
  const html = renderToStaticMarkup(<StreamNote state={{ kind: "lost", retryAt: Date.now() + 5_000, error }} onRetry={() => undefined} />);
  assert.match(html, /connection lost, again in 5 s/);
  assert.match(html, /too many streams are open/);
});
