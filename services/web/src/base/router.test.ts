/** Tests the addresses of pages. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { matchPath } from "./router";

test("a parameter is decoded, and never a part of the prototype", () => {
  assert.deepEqual({ ...matchPath("/sandbox/:run", "/sandbox/a%2Fb") }, { run: "a/b" });
  assert.deepEqual({ ...matchPath("/sandbox/:run", "/sandbox/__proto__") }, { run: "__proto__" });
  assert.equal(matchPath("/sandbox/:run", "/sandbox/%E0%A4%A")?.["run"], "%E0%A4%A");
});

test("other paths do not match", () => {
  assert.equal(matchPath("/sandbox/:run", "/sandbox"), null);
  assert.equal(matchPath("/sandbox/:run", "/sandbox/a/b"), null);
  assert.deepEqual({ ...matchPath("/sandbox", "/sandbox/") }, {});
});
