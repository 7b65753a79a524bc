/** Tests what is kept of the text that an agent writes on its way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Progress, ProgressText } from "./progress";

const later = () => new Promise((resolve) => setTimeout(resolve, 150));
const piece = (type: string, data: object) => ({ type, data });

test("pieces are published in a batch, and only their end is kept", async () => {
  const published: Progress[] = [];
  const progress = new ProgressText((next) => published.push(next));
  for (let count = 0; count < 3000; count += 1) progress.read(piece("data-progress", { text: "x" }));
  progress.read(piece("data-progress", { text: "end" }));
  progress.read(piece("data-missed", { count: 4 }));
  progress.read(piece("data-status", { text: "no progress" }));
  await later();
  assert.equal(published.length, 1);
  assert.deepEqual([published[0]?.text.length, published[0]?.text.slice(-4), published[0]?.missed], [2000, "xend", 4]);
});

test("another answer begins with nothing", async () => {
  const published: Progress[] = [];
  const progress = new ProgressText((next) => published.push(next));
  progress.read(piece("data-progress", { text: "old" }));
  progress.clear();
  progress.read(piece("data-progress", { text: "new" }));
  await later();
  assert.deepEqual(published, [{ text: "", missed: 0 }, { text: "new", missed: 0 }]);
});
