/** Tests the bars of a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolEvent } from "./eventLog";
import { timeline } from "./timeline";
import { type RunTool, reportedTools } from "./tools";

const at = (second: number) => new Date(Date.UTC(2026, 10, 24, 9, 0, second)).toISOString();
const bounds = ({ bars }: ReturnType<typeof timeline>) => bars.map(({ label, start, end }) => [label, start / 1000, end / 1000]);

test("phases follow each other from the order to the end", () => {
  const shown = timeline({
    run: { createdAt: at(0), endedAt: at(9), attempt: 0 },
    statuses: [{ phase: "preparing", at: at(2) }, { phase: "running", at: at(3) }, { phase: "settling", at: at(8) }],
    ends: [at(9)], calls: [], tools: [], now: 0,
  });
  assert.deepEqual(bounds(shown), [["queued", 0, 2], ["preparing", 2, 3], ["running", 3, 8], ["settling", 8, 9]]);
});

test("a later attempt begins where it was queued", () => {
  const shown = timeline({
    run: { createdAt: at(0), endedAt: null, attempt: 1 },
    statuses: [{ phase: "preparing", at: at(1) }, { phase: "queued", at: at(10) }, { phase: "preparing", at: at(12) }],
    ends: [at(9)], calls: [], tools: [], now: Date.parse(at(14)),
  });
  assert.deepEqual(bounds(shown), [["queued", 0, 2], ["preparing", 2, 4]]);
});

const called = (round: number, second: number): ToolEvent => ({
  round, event: { type: "tool_call", id: "same", name: `t${round}`, arguments: "{}", at: at(second) },
});
const later = { run: { createdAt: at(0), endedAt: null, attempt: 1 }, statuses: [], ends: [at(9)], calls: [], now: Date.parse(at(20)) };

test("a tool of an earlier attempt has no bar in a later one", () => {
  const tools = reportedTools([called(0, 5), called(1, 12)]);
  const host = (attempt: number, second: number): RunTool => ({ ...(tools[0] as RunTool), name: "host", attempt, startedAt: at(second) });
  const { bars } = timeline({ ...later, tools: [...tools, host(0, 6), host(1, 11)] });
  assert.deepEqual(bars.map(({ label }) => label), ["host", "t1"]);
});

test("the last calls have bars, and the others are counted", () => {
  const tools = reportedTools(Array.from({ length: 70 }, (_, index) => called(index, 10 + index)));
  const { bars, leftOut } = timeline({ ...later, tools });
  assert.deepEqual([bars.length, bars.at(-1)?.label, leftOut], [60, "t69", 10]);
});
