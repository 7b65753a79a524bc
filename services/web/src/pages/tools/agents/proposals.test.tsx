/** Tests what is proposed of a draft, and that a proposal is shown as text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import { type Proposal, SKILL_NAME, agentProposal } from "./propose";
import { Shown } from "./proposals";

const proposal: Proposal = {
  id: "ap-00c0ffee00c0ffee", account: "acct-1", kind: "skill", name: "greet", path: "skills/greet/SKILL.md", state: "proposed",
  diff: "--- a\n+++ a\n@@ -0,0 +1 @@\n+<img src=x>\n", branch: "sandbox/ap-00c0ffee00c0ffee",
  pullRequest: { number: 7, url: "https://evil.example/pull/7" }, reason: null, createdBy: "principal/ann",
  createdAt: "2026-01-01T00:00:00Z",
};

test("a draft is proposed as what it is", () => {
  const draft = (mode: string) => ({ agentId: "team:a", settings: { mode } });
  assert.equal(agentProposal(draft("gateway")).kind, "gatewayAgent");
  assert.equal(agentProposal(draft("ephemeral")).kind, "agent");
  assert.deepEqual(agentProposal({ agentId: "team:a", settings: {} }), { kind: "agent", agentId: "team:a", settings: {} });
});

test("a proposal is text, and links to the host of pull requests alone", () => {
  const html = renderToStaticMarkup(<Shown proposal={proposal} />);
  assert.ok(!html.includes("<img") && html.includes("&lt;img"));
  assert.ok(html.includes("#7") && !html.includes("href"), html);
  assert.ok(html.includes("proposed") && html.includes("skills/greet/SKILL.md"));
});

test("parts that are for operators are left out for others", () => {
  const html = renderToStaticMarkup(<Shown proposal={{ ...proposal, diff: null }} />);
  assert.ok(!html.includes("Difference"));
});

test("the pattern of skills is one that browsers can read", () => {
  const pattern = new RegExp(`^(?:${SKILL_NAME})$`, "v");
  const names = ["greet", "a", "../greet", "A", "-a", "a-", "a/b"];
  assert.deepEqual(names.filter((name) => pattern.test(name)), ["greet", "a"]);
});
