/** Divides differences of texts, also those of git, into lines. Pure. */

/** Line of a difference. */
export interface DiffLine {
  kind: "head" | "hunk" | "add" | "remove" | "same";
  text: string;
}

/**
 * Divides a diff into its lines. A hunk says how many lines it has, so that a removed line `-- x` is not taken for the head of a
 * file.
 */
export function readDiff(diff: string): DiffLine[] {
  const lines = diff.endsWith("\n") ? diff.slice(0, -1).split("\n") : diff.split("\n");
  const left = { old: 0, new: 0 };
  return lines.map((text) => ({ text, kind: kindOf(text, left) }));
}

function kindOf(line: string, left: { old: number; new: number }): DiffLine["kind"] {
  if (line.startsWith("\\")) return "same";
  if (left.old <= 0 && left.new <= 0) {
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (hunk === null) return "head";
    left.old = Number(hunk[1] ?? 1);
    left.new = Number(hunk[2] ?? 1);
    return "hunk";
  }
  const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "remove" : "same";
  if (kind !== "add") left.old -= 1;
  if (kind !== "remove") left.new -= 1;
  return kind;
}
