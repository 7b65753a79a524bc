// Removes the state that an earlier run of an agent left in its workspace. The image of OpenClaw has this file, too.
import { chmodSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import path from "node:path";

// Removes what is at `root`; nothing there is no error. Follows no link. Unlike `rmSync`, it removes directories whose files are
// protected, such as those of Go's module cache.
export function removeTree(root) {
  const found = lstatSync(root, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) return unlinkSync(root);
  chmodSync(root, 0o700);
  readdirSync(root).forEach((name) => removeTree(path.join(root, name)));
  rmdirSync(root);
}
