/**
 * Divides text of agents into what may be shown as it is, and what is shown as a mark: control characters, escape sequences,
 * bidirectional controls, invisible characters, rows of blanks and piles of combining marks. The sequences are those that
 * platform/runtime/src/terminal.rs removes.
 */
import { INVISIBLE } from "./invisible";

/** Piece of a text: shown as it is, or as a mark with a label and an explanation. */
export type Piece = { kind: "text"; text: string } | { kind: "mark"; label: string; title: string };

/** Combining marks that one letter may have; more could cover other lines. */
export const MAX_COMBINING = 4;
/** Blanks in a row that a reader has; more could push other text out of sight. */
export const MAX_BLANKS = 4;
/** Ordinary spaces in a row, of which an indentation has many. */
export const MAX_SPACES = 80;
const MAX_LABEL = 24;

const SEQUENCE =
  // Control sequences, strings (title, clipboard, device control) and other escapes. None passes the end of its line.
  /(?:\x1b\[|\x9b)[ -?]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x9c\x1b\n]*(?:\x07|\x9c|\x1b\\)?|\x1b[ -/]*[0-~]?/
    .source;
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/.source;
const { direction: DIRECTION, filler: FILLER, hidden: HIDDEN, joiner: JOINERS, selector: SELECTORS, space: SPACE } = INVISIBLE;
/** Joiners between emoji, and selectors behind one, are a part of it. Other joiners and selectors are marks. */
const JOINER =
  /(?<!\p{Extended_Pictographic}\p{M}*\p{Emoji_Modifier}?)\u200d|\u200d(?!\p{Extended_Pictographic})/u.source +
  `|(?!\u200d)[${JOINERS}]|(?<!\\p{Emoji})[\ufe0e\ufe0f]|(?![\ufe0e\ufe0f])[${SELECTORS}]`;
const SURROGATE = /\p{Surrogate}/u.source;
const PILE = `(?<pile>(?<=\\p{M}{${MAX_COMBINING}})\\p{M}+)`;
const ALWAYS = [SEQUENCE, repeated(`${CONTROL}|[${DIRECTION}${HIDDEN}]`)];
/** For readers: blanks that keep words apart stay, and so does what emoji need. */
const ODD = joined([...ALWAYS, JOINER, `(?<blank>[${SPACE}${FILLER}]{${MAX_BLANKS + 1},})`, SURROGATE, PILE]);
/** For those who decide about a text: nothing that is not seen stays. */
const EXACT = joined([
  ...ALWAYS, repeated(`[${JOINERS}${SELECTORS}]`, "again"), `(?<blank>[${SPACE}${FILLER}]+| {${MAX_SPACES + 1},})`, SURROGATE, PILE,
]);

function joined(parts: string[]): RegExp {
  return new RegExp(parts.map((part) => `(?:${part})`).join("|"), "gu");
}

/** Matches one character of `part`, and each further one that is the same. */
function repeated(part: string, name = "same"): string {
  return `(?<${name}>${part})\\k<${name}>*`;
}

/**
 * Divides `text`. The texts of all pieces that are shown as they are, in order, are free of everything above. `isExact` is for
 * texts about which a person decides: single blanks and parts of emoji are marks there, too.
 */
export function findMarks(text: string, isExact = false): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(isExact ? EXACT : ODD)) {
    if (match.index > end) pieces.push({ kind: "text", text: text.slice(end, match.index) });
    const found = match[0];
    // A carriage return before a line feed is an ordinary end of a line.
    if (!(found === "\r" && text[match.index + 1] === "\n")) pieces.push(markOf(found, match.groups ?? {}));
    end = match.index + found.length;
  }
  if (end < text.length) pieces.push({ kind: "text", text: text.slice(end) });
  return pieces;
}

/** Returns `text` with its marks as words, for places that take no elements, such as titles and labels. */
export function visibleText(text: string): string {
  return findMarks(text)
    .map((piece) => (piece.kind === "text" ? piece.text : `⟨${piece.label}⟩`))
    .join("");
}

function markOf(found: string, groups: Record<string, string | undefined>): Piece {
  const chars = [...found];
  const first = found.codePointAt(0) ?? 0;
  if (groups["pile"] !== undefined) return { kind: "mark", label: `+${chars.length}`, title: "further combining marks, not shown" };
  if (chars.every((char) => char === chars[0])) {
    const times = chars.length > 1 ? `${chars.length}× ` : "";
    return { kind: "mark", label: times + nameOf(first), title: titleOf(first) };
  }
  if (groups["blank"] !== undefined) return { kind: "mark", label: `${chars.length}× blank`, title: titleOf(first) };
  const label = `${first === 0x1b ? "ESC" : nameOf(first)}${printable(found.slice(1))}`;
  const isLong = label.length > MAX_LABEL;
  return { kind: "mark", label: isLong ? `${label.slice(0, MAX_LABEL)}…` : label, title: "escape sequence of terminals" };
}

function printable(text: string): string {
  return [...text].map((char) => (/[\x20-\x7e]/.test(char) ? char : ".")).join("");
}

const NAMES = new Map<number, string>([
  [0, "NUL"], [7, "BEL"], [8, "BS"], [13, "CR"], [0x1b, "ESC"], [0x7f, "DEL"], [0xad, "SHY"], [0x200b, "ZWSP"], [0x200c, "ZWNJ"],
  [0x200d, "ZWJ"], [0x200e, "LRM"], [0x200f, "RLM"], [0x202a, "LRE"], [0x202b, "RLE"], [0x202c, "PDF"], [0x202d, "LRO"],
  [0x202e, "RLO"], [0x2066, "LRI"], [0x2067, "RLI"], [0x2068, "FSI"], [0x2069, "PDI"], [0x2060, "WJ"], [0xfeff, "BOM"],
]);

function nameOf(code: number): string {
  return NAMES.get(code) ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function titleOf(code: number): string {
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  if (code === 0x20) return "spaces";
  if (code < 0xa0) return `control character ${number}`;
  if (code >= 0xd800 && code <= 0xdfff) return `half of a character, ${number}`;
  const isTurning = new RegExp(`[${DIRECTION}]`, "u").test(String.fromCodePoint(code));
  return isTurning ? `changes the direction of text, ${number}` : `invisible, ${number}`;
}
