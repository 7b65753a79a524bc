/** Tests the words for an action on a gateway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeText } from "./outcome";

test("an outcome says what differed", () => {
  const text = (outcome: string, changed: string[] = []) => outcomeText({ gateway: "g", outcome, changed });
  assert.equal(text("stopped"), "stopped");
  assert.equal(text("restarted", ["container.memory"]), "restarted; it differed in container.memory");
  assert.equal(text("of_a_later_version"), "of_a_later_version");
});
