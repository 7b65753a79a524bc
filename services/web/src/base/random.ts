/** Makes ids that cannot be guessed, also on pages without TLS. */
/** Returns an id of 128 random bits that begins with `prefix`. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return prefix + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
