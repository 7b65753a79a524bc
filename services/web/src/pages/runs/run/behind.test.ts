/** Tests that a run is read again until the page knows of its end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unreachable } from "../../../api/problem";
import { isBehind } from "./behind";
import type { RunDetails } from "./useRun";

const run = (state: string) => ({ state }) as RunDetails;

test("a run is read again after a failed request, and after its last event", () => {
  assert.equal(isBehind({ data: run("running"), error: unreachable() }, "ended"), true, "the request after the last event failed");
  assert.equal(isBehind({ data: run("running"), error: unreachable() }, "open"), true);
  assert.equal(isBehind({ data: run("running"), error: null }, "ended"), true, "the answer was older than the end");
  assert.equal(isBehind({ data: run("running"), error: null }, "open"), false);
  assert.equal(isBehind({ data: run("succeeded"), error: null }, "ended"), false);
  assert.equal(isBehind({ data: null, error: unreachable() }, "open"), false, "the page shows the failure");
});
