// Renews the table of invisible characters from the Unicode data of this Node: `npm run unicode`, then `npm run generate`.
// The table is checked in, so nothing but this reads those data.
import { writeFile } from "node:fs/promises";
import { TABLE } from "./invisible.mjs";

// Each kind with the properties that make a character one of it. The first that fits counts.
const KINDS = [
  ["hidden", [["White_Space, ends a line", /[\u2028\u2029]/u]]],
  ["space", [["White_Space", /\p{White_Space}/u]]],
  ["direction", [["Bidi_Control", /\p{Bidi_Control}/u]]],
  ["joiner", [["Join_Control", /\p{Join_Control}/u]]],
  ["selector", [["Variation_Selector", /\p{Variation_Selector}/u]]],
  ["hidden", [["Default_Ignorable_Code_Point", /\p{Default_Ignorable_Code_Point}/u], ["Cf", /\p{Cf}/u]]],
  // Blank in every font, but letters, marks or symbols to Unicode: BRAILLE PATTERN BLANK, KHITAN SMALL SCRIPT FILLER,
  // MUSICAL SYMBOL NULL NOTEHEAD. The fillers of Hangul are ignorable.
  ["filler", [["named", /[\u2800\u{16fe4}\u{1d159}]/u]]],
];
// Prepended_Concatenation_Mark: of category Cf, but signs that are seen. Node's expressions do not have the property.
const SEEN = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
// Controls (category Cc) are not part of the table: each place treats them in its own way.
const FIRST = 0xa0;
const LAST = 0x10ffff;

/** Returns kind and reason of a code point, or undefined if it is seen. */
function judge(code) {
  const char = String.fromCodePoint(code);
  if (/\p{Surrogate}/u.test(char) || SEEN.test(char)) return undefined;
  for (const [kind, reasons] of KINDS) {
    const reason = reasons.find(([, pattern]) => pattern.test(char));
    if (reason !== undefined) return `${kind} ${reason[0]}`;
  }
  return undefined;
}

const ranges = [];
for (let code = FIRST; code <= LAST; code += 1) {
  const what = judge(code);
  const last = ranges.at(-1);
  if (what === undefined) continue;
  if (last !== undefined && last.last === code - 1 && last.what === what) last.last = code;
  else ranges.push({ first: code, last: code, what });
}
const hex = (code) => code.toString(16).toUpperCase().padStart(4, "0");
const lines = ranges.map(({ first, last, what }) => `${hex(first)}..${hex(last)} ${what}`);
const head = `# Characters of which nothing is seen, or that turn the direction of text: range, kind, reason.
# Made by \`npm run unicode\` in services/web. \`npm run generate\` makes ranges.rs and the dashboard's list of it.
Unicode ${process.versions.unicode}
`;
await writeFile(TABLE, `${head}${lines.join("\n")}\n`);
