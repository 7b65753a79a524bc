/** Tests the list of agents, and what the form of a draft makes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AGENT_ID, EMPTY_FIELDS, readDraft } from "./draft-fields";
import { filterAgents } from "./index";

const agent = (agentId: string, canRun: boolean, name = agentId) => ({
  agentId, canRun, name, description: "", graphId: agentId, mayOrder: true, gateways: [], reasons: [],
});
const agents = [agent("b:run", true), agent("a:run", true, "Reviewer"), agent("z:blocked", false)];
const ids = (filter: Parameters<typeof filterAgents>[1]) => filterAgents(agents, filter).map((one) => one.agentId);

test("blocked agents come first", () => assert.deepEqual(ids({ state: "all", text: "" }), ["z:blocked", "a:run", "b:run"]));

test("a filter takes the state and a part of id or name", () => {
  assert.deepEqual(ids({ state: "ready", text: "" }), ["a:run", "b:run"]);
  assert.deepEqual(ids({ state: "blocked", text: "" }), ["z:blocked"]);
  assert.deepEqual(ids({ state: "all", text: "REVIEW" }), ["a:run"]);
});

const settingsOf = (fields: Partial<typeof EMPTY_FIELDS>) => readDraft({ ...EMPTY_FIELDS, ...fields }).body.settings;

test("fields without a text are left out", () => {
  const { body } = readDraft({ ...EMPTY_FIELDS, agentId: " team:a ", image: "a:1", runTimeout: "10m" });
  assert.deepEqual(body, { agentId: "team:a", settings: { image: "a:1", run_timeout: "10m" } });
});

test("a line of the command is one argument", () => {
  const { argv } = settingsOf({ argv: "/usr/bin/review\r\n--title=two words\n\n -x" });
  assert.deepEqual(argv, ["/usr/bin/review", "--title=two words", " -x"]);
});

test("models are divided by commas and lines", () => assert.deepEqual(settingsOf({ models: "a, b\nc,," })["models"], ["a", "b", "c"]));

test("cost stays text and tokens become a number", () => {
  const settings = settingsOf({ cost: "0.50", totalTokens: "200,000" });
  assert.deepEqual([settings["cost"], settings["total_tokens"]], ["0.50", 200_000]);
});

test("other settings are texts, whole numbers, truth values and lists", () => {
  const { body, mistakes } = readDraft({ ...EMPTY_FIELDS, others: 'memory = "1 GiB"\npids= 64\nkeep_x =true\nhost_tools = ["a__b"]\n' });
  assert.deepEqual(body.settings, { memory: "1 GiB", pids: 64, keep_x: true, host_tools: ["a__b"] });
  assert.deepEqual(mistakes, []);
});

test("each line that cannot be read is named", () => {
  const others = ["pids 64", "memory = 1 GiB", "a = { }", "b = 1.5", "c = null", "image = \"x\""].join("\n");
  const { mistakes } = readDraft({ ...EMPTY_FIELDS, image: "a:1", others });
  assert.equal(mistakes.length, 6);
  assert.match(mistakes[5] ?? "", /`image` is given twice/);
});

test("a setting never reaches the prototype", () => {
  const { body } = readDraft({ ...EMPTY_FIELDS, others: '__proto__ = ["x"]' });
  assert.deepEqual(Object.keys(body.settings), ["__proto__"]);
  assert.equal(Object.getPrototypeOf(body.settings), Object.prototype);
});

test("the pattern of ids is one that browsers can read", () => {
  const pattern = new RegExp(`^(?:${AGENT_ID})$`, "v");
  const ids = ["team:code-review", "team", "Team:a", "a:b:c", "-a:b"];
  assert.deepEqual(ids.filter((id) => pattern.test(id)), ["team:code-review"]);
});
