/** Tests that each event is shown once, in order, and that texts become whole. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLog, filterRows, nextFailure } from "./eventLog";
import type { RunEvent } from "./eventRow";

const delta = (seq: number, text: string): RunEvent => ({ type: "text_delta", seq, delta: text });

test("pieces of one text are one row", () => {
  const log = new EventLog();
  log.append([delta(1, "Hel"), delta(2, "lo"), { type: "status", seq: 3, phase: "settling" }, delta(4, "!")]);
  assert.deepEqual(log.rows.map((row) => row.text), ["Hello", "", "!"]);
  assert.equal(log.answer, "Hello!");
});

test("an event that comes again is left out", () => {
  const log = new EventLog();
  log.append([delta(1, "a"), delta(2, "b")]);
  log.append([delta(2, "b"), delta(3, "c")]);
  assert.equal(log.answer, "abc");
  assert.equal(log.lastSeq, 3);
});

test("live text that is sent again after a reconnect is not doubled", () => {
  const log = new EventLog();
  const live = (text: string): RunEvent => ({ type: "text_delta", live: true, delta: text });
  log.append([live("one "), live("two ")]);
  log.reconnected();
  log.append([live("one two "), live("three")]);
  assert.equal(log.answer, "one two three");
});

test("the final answer replaces what was streamed", () => {
  const log = new EventLog();
  log.append([delta(1, "draft"), { type: "assistant_final", seq: 2, content: "answer" }]);
  assert.equal(log.answer, "answer");
});

test("a type of a newer server is a row, not a failure of the page", () => {
  const log = new EventLog();
  log.append([{ type: "new_thing", seq: 1 } as unknown as RunEvent]);
  assert.equal(log.rows[0]?.label, "new_thing");
});

test("a call of a host tool is a row of its own kind", () => {
  const log = new EventLog();
  log.append([{ type: "host_tool", seq: 1, id: "c", name: "git.push", state: "denied", arguments: "{}" }]);
  const [row] = log.rows;
  assert.deepEqual([row?.kind, row?.label, row?.text, row?.isFailure], ["tool", "host tool denied", "git.push {}", true]);
});

test("rows are found by kind and text", () => {
  const log = new EventLog();
  log.append([
    { type: "tool_result", seq: 1, id: "a", result: "Not Found", isError: true },
    { type: "log", seq: 2, stream: "stderr", text: "fine" },
    { type: "error", seq: 3, code: "timeout", message: "too long" },
  ]);
  assert.equal(filterRows(log.rows, ["tool"], "not found").length, 1);
  assert.equal(filterRows(log.rows, ["log"], "not found").length, 0);
});

test("failures are found in turn, also after the filter has changed", () => {
  const log = new EventLog();
  log.append([
    { type: "tool_result", seq: 1, id: "a", result: "Not Found", isError: true },
    { type: "log", seq: 2, stream: "stderr", text: "fine" },
    { type: "error", seq: 3, code: "timeout", message: "too long" },
  ]);
  const turns = [null, "1", "3", "gone"].map((from) => nextFailure(log.rows, from)?.key);
  assert.deepEqual(turns, ["1", "3", "1", "1"]);
  assert.equal(nextFailure(filterRows(log.rows, ["end"], ""), "1")?.key, "3");
  assert.equal(nextFailure(filterRows(log.rows, ["log"], ""), "1"), null);
});

test("events that are no longer kept are counted", () => {
  const log = new EventLog();
  log.append([{ type: "pruned", seq: 7, count: 7 }]);
  assert.equal(log.pruned, 7);
});
