/** Tests that any text can be part of an address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPath } from "./client";
import { encodePart } from "./encode";

test("half of a character does not break an address", () => {
  assert.equal(encodePart("a\ud800/👋"), "a%EF%BF%BD%2F%F0%9F%91%8B");
});

test("parts and query of a path are escaped, and empty ones left out", () => {
  const path = buildPath("/api/v1/runs/{run}/events", { run: "a/../b?c" }, { after: 3, kind: "", find: undefined });
  assert.equal(path, "/api/v1/runs/a%2F..%2Fb%3Fc/events?after=3");
});
