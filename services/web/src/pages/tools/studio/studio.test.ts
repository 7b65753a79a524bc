/** Tests how agents of gateways, their settings and what they may do are read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { policyReasons } from "./AgentTable";
import { type GatewayAgent, fixedReason, nameMistake, newest, pagePath, pollSeconds, readState, slugOf } from "./agents";
import { countTools, readTools } from "./explanation";
import { isTooLarge, storedRevision, storedText } from "./files";
import { bodyOf, conflictRows, fieldsOf, isChanged, isReady, rebase } from "./settings";

const free = { value: "on", reason: null };
const agent: GatewayAgent = {
  gateway: "coding", id: "research-bot", account: "a", source: "stored", name: "Research Bot", avatar: null, model: null,
  workspace: "/w", commands: "ask", web: "on", files: "on", allowedCommands: ["make test"],
  effective: { commands: { value: "ask", reason: null }, web: free, files: free }, revision: 3, state: "applied", step: null,
  problem: null, createdAt: "2026-11-27T10:00:00Z", changedAt: "2026-11-27T10:00:00Z",
};

test("a name gives the id that the server makes", () => {
  const names = ["Research Bot", "RESEARCH   bot!", "-- a_b --", "Café 2", "7", "défault", "\u212aelvin", "研究"];
  assert.deepEqual(names.map(slugOf), ["research-bot", "research-bot", "a-b", "caf-2", "7", "d-fault", "elvin", ""]);
});

test("a name that gives no id is refused with the reason", () => {
  assert.equal(nameMistake("Research Bot"), null);
  assert.equal(nameMistake("  "), "");
  assert.match(nameMistake("研究") ?? "", /letter a-z or digit/);
  assert.match(nameMistake("Default") ?? "", /keeps the id default/);
  assert.match(nameMistake("x".repeat(65)) ?? "", /At most 64/);
});

test("a state has its step while something is left to do", () => {
  assert.deepEqual(readState({ state: "applying", step: "configuration" }), { text: "applying: configuration", tone: "busy" });
  assert.deepEqual(readState({ state: "applied", step: null }), { text: "applied", tone: "good" });
  assert.deepEqual(readState({ state: "odd", step: null }), { text: "odd", tone: "idle" });
});

test("agents that change are asked about more often", () => {
  assert.deepEqual([pollSeconds([{ state: "applied" }], 30), pollSeconds([{ state: "applied" }, { state: "removing" }], 30)], [30, 3]);
});

test("agents of the configuration, and those of viewers, are fixed", () => {
  assert.equal(fixedReason(agent, true), null);
  assert.match(fixedReason({ ...agent, source: "configuration" }, true) ?? "", /configuration file/);
  assert.match(fixedReason(agent, false) ?? "", /role member/);
});

test("an address has escaped parts", () => assert.equal(pagePath("a/b", "c d"), "/gateways/a%2Fb/c%20d"));

test("the newer answer counts, and a later question wins", () => {
  const answered = { ...agent, revision: 4, state: "applying" };
  assert.equal(newest(agent, answered), answered);
  assert.equal(newest({ ...answered, state: "applied" }, answered)?.state, "applied");
});

test("a conflict shows the settings that differ, and no others", () => {
  const yours = { ...fieldsOf(agent), name: "Mine ", commands: "auto" as const, allowedCommands: [] };
  const theirs = fieldsOf({ ...agent, name: "Mine", model: "m" });
  assert.deepEqual(conflictRows(yours, theirs), [
    { field: "Model", yours: "that of the ordered agent", current: "m" },
    { field: "Commands", yours: "auto", current: "ask" },
    { field: "Allowed commands", yours: "none", current: "make test" },
  ]);
  assert.deepEqual(conflictRows(theirs, { ...theirs, allowedCommands: [...theirs.allowedCommands].reverse() }), []);
});

test("what is sent has no blanks around, and null for what is empty", () => {
  const body = bodyOf({ ...fieldsOf(agent), name: " New ", avatar: " ", model: " m " }, 3);
  assert.deepEqual(body, {
    revision: 3, name: "New", avatar: null, model: "m", commands: "ask", web: "on", files: "on", allowedCommands: ["make test"],
  });
});

test("a form follows the agent until something is typed", () => {
  const later = { ...agent, revision: 4, web: "off" };
  assert.equal(rebase({ base: agent, fields: fieldsOf(agent) }, later).fields.web, "off");
  const typed = { base: agent, fields: { ...fieldsOf(agent), name: "Typed" } };
  assert.equal(rebase(typed, later), typed, "someone else's change is a conflict at the next save");
  const onlyFiles = rebase(typed, { ...agent, revision: 4 });
  assert.deepEqual([onlyFiles.base.revision, onlyFiles.fields.name], [4, "Typed"], "a written file is none");
});

test("a form is sent only with a change and a name", () => {
  const edit = { base: agent, fields: { ...fieldsOf(agent), name: "研究" } };
  assert.deepEqual([isChanged(edit), isReady(edit)], [true, false]);
  assert.equal(isReady({ base: agent, fields: fieldsOf(agent) }), false);
});

test("tools that are denied come first, and later verdicts last", () => {
  const of = (tool: string, verdict: string, layer: string) => ({ tool, verdict, layer, reason: "r", setting: null });
  const read = readTools([
    of("read", "allowed", "gateway tools"), of("x", "new", "new layer"), of("web_fetch", "denied", "host policy"),
    of("exec", "asks", "approvals"), of("browser", "denied", "sandbox tools"),
  ]);
  assert.deepEqual(read.map((row) => [row.tool, row.verdict, row.layer]), [
    ["browser", "denied", "Tools of OpenClaw’s containers"], ["web_fetch", "denied", "Policy of this host"],
    ["exec", "a person decides", "Approvals of commands"], ["read", "allowed", "Tools of the gateway"], ["x", "new", "new layer"],
  ]);
  assert.equal(countTools(read), "2: denied, 1: a person decides, 1: allowed, 1: new");
});

test("each reason of the policy is one footnote", () => {
  const strict = { value: "off", reason: "no network" };
  assert.deepEqual(policyReasons([agent, ...[1, 2].map(() => ({ effective: { ...agent.effective, web: strict } }))]), ["no network"]);
});

test("a file that is not stored is empty, and its size is that of its bytes", () => {
  assert.equal(storedText([{ name: "SOUL.md", content: "x" }], "USER.md"), "");
  const revisions = (["SOUL.md", "USER.md"] as const).map((name) => storedRevision([{ name: "SOUL.md", revision: 3 }], name));
  assert.deepEqual(revisions, [3, 0]);
  assert.deepEqual([isTooLarge("é".repeat(128 * 1024)), isTooLarge(`${"é".repeat(128 * 1024)}x`)], [false, true]);
});
