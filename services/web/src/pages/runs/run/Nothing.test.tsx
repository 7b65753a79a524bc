/** Tests that a list is called empty only once it is known to be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { unreachable } from "../../../api/problem";
import type { StreamState } from "../../../api/stream";
import { EventLog } from "./eventLog";
import { Nothing, type Source } from "./Nothing";

const show = (stream: StreamState, phase: Source["phase"], log = new EventLog()) =>
  renderToStaticMarkup(<Nothing source={{ log, version: 0, stream, phase }} title="Nothing at all" />);

test("a list is empty once its stream was read", () => {
  assert.match(show({ kind: "ended" }, "ended"), /Nothing at all/);
  assert.match(show({ kind: "open" }, "active"), /Nothing at all/);
});

test("what is loading or lost is not called empty", () => {
  const error = unreachable();
  const states: StreamState[] = [
    { kind: "connecting" }, { kind: "paused" }, { kind: "lost", retryAt: 0, error }, { kind: "refused", error },
  ];
  for (const state of states) assert.equal(show(state, "active").includes("Nothing at all"), false, state.kind);
  assert.equal(show({ kind: "open" }, "ended").includes("Nothing at all"), false);
});

test("removed events are said to be removed", () => {
  const log = new EventLog();
  log.append([{ type: "pruned", seq: 3, count: 3 }]);
  assert.match(show({ kind: "ended" }, "ended", log), /3 older events/);
});
