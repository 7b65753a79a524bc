/** Finds addresses of web pages in text that has no marks. Only `http` and `https` are links; nothing else ever is. */

/** Piece of a text: plain, or an address with its host as browsers ask for it. */
export type LinkPiece = { kind: "text"; text: string } | { kind: "link"; text: string; href: string; host: string };

const ADDRESS = /\bhttps?:\/\/[^\s<>"'`{}|\\^]+/gi;
const TRAILING = /[.,;:!?)\]*_~]+$/;
const MAX_LINKS = 200;

/** Divides `text` into plain text and links. */
export function findLinks(text: string): LinkPiece[] {
  const pieces: LinkPiece[] = [];
  let end = 0;
  let links = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const link = links < MAX_LINKS ? toLink(match[0].replace(TRAILING, "")) : null;
    if (link === null) continue;
    links += 1;
    if (match.index > end) pieces.push({ kind: "text", text: text.slice(end, match.index) });
    pieces.push(link);
    end = match.index + link.text.length;
  }
  if (end < text.length) pieces.push({ kind: "text", text: text.slice(end) });
  return pieces;
}

function toLink(text: string): Extract<LinkPiece, { kind: "link" }> | null {
  const url = webAddress(text);
  return url === null ? null : { kind: "link", text, href: url.href, host: url.host };
}

/** Returns `text` as an address if its scheme is http or https, else null. Names of other scripts become punycode. */
export function webAddress(text: string): URL | null {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}
