/** Tests addresses, lists and delays of requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPath, encodePart } from "./client";
import { beginList, withFailure, withPage } from "./pageList";
import { ApiError, unreachable } from "./problem";
import { pollDelay } from "./usePoll";

test("half of a character does not break an address", () => {
  assert.equal(encodePart("a\ud800/👋"), "a%EF%BF%BD%2F%F0%9F%91%8B");
});

test("parts and query of a path are escaped, and empty ones left out", () => {
  const path = buildPath("/api/v1/runs/{run}/events", { run: "a/../b?c" }, { after: 3, kind: "", find: undefined });
  assert.equal(path, "/api/v1/runs/a%2F..%2Fb%3Fc/events?after=3");
});

const first = withPage(beginList<number>("k"), { key: "k", wants: null }, { items: [1, 2], nextCursor: "c2" });

test("a further page follows the items so far", () => {
  const both = withPage(first, { key: "k", wants: "c2" }, { items: [3], nextCursor: null });
  assert.deepEqual([both.items, both.next], [[1, 2, 3], null]);
});

test("a page that failed is known, and the items stay", () => {
  const failed = withFailure(first, { key: "k", wants: "c2" }, unreachable());
  assert.deepEqual([failed.items, failed.failed, failed.wants], [[1, 2], "c2", undefined]);
  const both = withPage(failed, { key: "k", wants: failed.failed }, { items: [3], nextCursor: null });
  assert.deepEqual([both.items, both.error], [[1, 2, 3], null]);
});

test("the first page of another key replaces the items", () => {
  const other = withPage(first, { key: "other", wants: null }, { items: [9], nextCursor: null });
  assert.deepEqual([other.key, other.items], ["other", [9]]);
});

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
