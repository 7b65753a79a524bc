/** Compares two texts line by line. Pure. */
import type { DiffLine } from "./diff";

/** Unchanged lines that are shown before and after a change. */
const CONTEXT = 3;
/** Most pairs of lines that are compared; of larger parts, all lines are taken as replaced. */
const MAX_PAIRS = 2_000_000;

/** Returns the difference of two texts with its context, as a diff has it; nothing if they are the same. */
export function compareLines(before: string, after: string): DiffLine[] {
  if (before === after) return [];
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let tail = 0;
  while (tail < old.length - start && tail < now.length - start && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const same = (lines: string[]) => lines.map((text): DiffLine => ({ kind: "same", text: ` ${text}` }));
  const changed = compareMiddle(old.slice(start, old.length - tail), now.slice(start, now.length - tail));
  return withContext([...same(old.slice(0, start)), ...changed, ...same(old.slice(old.length - tail))]);
}

/** Returns the lines of a text. A last line without an end is another line than the same one with it. */
function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") return lines.slice(0, -1);
  return [...lines.slice(0, -1), `${lines.at(-1) ?? ""} (no end of line)`];
}

function compareMiddle(old: string[], now: string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "remove", text: `-${text}` });
  const added = (text: string): DiffLine => ({ kind: "add", text: `+${text}` });
  if (old.length * now.length > MAX_PAIRS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number) => longest[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      const isSame = old[row] === now[column];
      longest[row * width + column] = isSame ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    const [left, right] = [old[row], now[column]];
    if (left !== undefined && left === right) {
      lines.push({ kind: "same", text: ` ${left}` });
      row += 1;
      column += 1;
    } else if (left !== undefined && (right === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push(removed(left));
      row += 1;
    } else {
      lines.push(added(right ?? ""));
      column += 1;
    }
  }
  return lines;
}

/** Leaves out lines that are far from each change, and says how many. */
function withContext(lines: DiffLine[]): DiffLine[] {
  const near = new Set<number>();
  for (const [index, { kind }] of lines.entries()) {
    if (kind === "same") continue;
    for (let at = index - CONTEXT; at <= index + CONTEXT; at += 1) near.add(at);
  }
  const kept: DiffLine[] = [];
  let skipped = 0;
  for (const [index, line] of lines.entries()) {
    if (!near.has(index)) {
      skipped += 1;
      continue;
    }
    if (skipped > 0) kept.push(skippedLine(skipped));
    skipped = 0;
    kept.push(line);
  }
  if (skipped > 0) kept.push(skippedLine(skipped));
  return kept;
}

function skippedLine(count: number): DiffLine {
  return { kind: "hunk", text: `… ${count} unchanged` };
}
