/** Tests the list of agents. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { filterAgents } from "./agents";

const agent = (agentId: string, canRun: boolean, name = agentId) => ({
  agentId, canRun, name, description: "", graphId: agentId, mayOrder: true, reasons: [],
});
const agents = [agent("b:run", true), agent("a:run", true, "Reviewer"), agent("z:blocked", false)];
const ids = (filter: Parameters<typeof filterAgents>[1]) => filterAgents(agents, filter).map((one) => one.agentId);

test("blocked agents come first", () => assert.deepEqual(ids({ state: "all", text: "" }), ["z:blocked", "a:run", "b:run"]));

test("a filter takes the state and a part of id or name", () => {
  assert.deepEqual(ids({ state: "ready", text: "" }), ["a:run", "b:run"]);
  assert.deepEqual(ids({ state: "blocked", text: "" }), ["z:blocked"]);
  assert.deepEqual(ids({ state: "all", text: "REVIEW" }), ["a:run"]);
});
