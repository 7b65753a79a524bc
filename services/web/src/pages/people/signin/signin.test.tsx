/** Tests when a one-time link asks before it is used. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderToStaticMarkup } from "react-dom/server";
import type { SessionState } from "../../../base/session";
import { LinkQuestion, replacedBy } from "./index";

const signedIn = (principal: string | null): SessionState => {
  return { kind: "signedIn", session: { principal, account: "acct-1", role: "member" } };
};

test("a link asks only where it replaces the session of a principal", () => {
  assert.equal(replacedBy("code", signedIn("ann")), "ann");
  assert.equal(replacedBy(null, signedIn("ann")), null);
  assert.equal(replacedBy("code", signedIn(null)), null);
  assert.equal(replacedBy("code", { kind: "signedOut", reason: "none" }), null);
});

test("the question names who is signed in", () => {
  const html = renderToStaticMarkup(<LinkQuestion principal="ann" onUse={() => undefined} onStay={() => undefined} />);
  assert.match(html, /Stay signed in as .*ann/);
  assert.match(html, />Use the link</);
});
