/** Tests how findings are read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFindings, readState } from "./findings";

const finding = (code: string, kind: string, message: string) => ({ code, kind, message });

test("a message is divided into finding and fix", () => {
  const [read] = readFindings([finding("control_ui_on", "wrong", "its control UI is on: set gateway.controlUi.enabled to false")]);
  assert.deepEqual([read?.found, read?.fix, read?.tone], ["its control UI is on", "set gateway.controlUi.enabled to false", "bad"]);
});

test("a cause is not a fix", () => {
  const [read] = readFindings([finding("gateway_unavailable", "not_known", "it cannot be reached: no such file")]);
  assert.deepEqual([read?.found, read?.fix], ["it cannot be reached: no such file", null]);
});

test("the worst comes first, unknown kinds last", () => {
  const kinds = ["new_kind", "not_known", "untested", "wrong"].map((kind) => finding("x", kind, "y"));
  assert.deepEqual(readFindings(kinds).map((read) => read.level), ["wrong", "untested", "not known", "new_kind"]);
});

test("a state of a later version is shown as it is", () => {
  assert.deepEqual(readState({ gateway: "g", state: "odd", findings: [] }), { text: "odd", tone: "idle" });
});
