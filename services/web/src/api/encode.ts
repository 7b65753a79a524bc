/** Escapes text for addresses. */

/** Returns `text` as a part of an address. Halves of characters, which have no form there, are replaced. */
export function encodePart(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
