/** Lays out JSON texts for people. Pure. */

/**
 * Spreads JSON over lines without reading it: every character of the text stays, and only white space outside of strings
 * changes. So a doubled key or a long number is shown as the tool gets it.
 */
export function spreadJson(text: string): string {
  let out = "";
  let depth = 0;
  let inString = false;
  const line = () => `\n${"  ".repeat(Math.min(depth, 20))}`;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (inString) {
      out += char;
      if (char === "\\") out += text.charAt((at += 1));
      else if (char === '"') inString = false;
    } else if (char === '"') {
      inString = true;
      out += char;
    } else if (char === "{" || char === "[") {
      const end = /^\s*[}\]]/.exec(text.slice(at + 1, at + 64));
      if (end !== null) {
        out += char + end[0].trim();
        at += end[0].length;
      } else {
        depth += 1;
        out += char + line();
      }
    } else if (char === "}" || char === "]") {
      depth = Math.max(0, depth - 1);
      out += line() + char;
    } else if (char === ",") {
      out += char + line();
    } else if (char === ":") {
      out += ": ";
    } else if (!/[ \t\r\n]/.test(char)) {
      out += char;
    }
  }
  return out;
}
