/** Tests the delay between requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "./problem";
import { pollDelay } from "./usePoll";

const failure = (status: number, retryAfter: number | null = null) =>
  new ApiError({ status, code: "x", detail: "x", help: "" }, retryAfter);

test("a good answer keeps the interval, but for one that is too short", () => {
  assert.deepEqual([5, 0].map((seconds) => pollDelay(seconds, null)), [5, 2]);
});

test("a failure doubles the interval, up to a minute", () => {
  assert.equal(pollDelay(5, failure(0)), 10);
  assert.equal(pollDelay(45, failure(503)), 60);
});

test("the server's delay wins if it is longer", () => {
  assert.equal(pollDelay(5, failure(503, 30)), 30);
  assert.equal(pollDelay(5, failure(429, 1)), 5);
});

test("a refusal ends the requests", () => {
  for (const status of [401, 403, 404]) assert.equal(pollDelay(5, failure(status)), null);
});
