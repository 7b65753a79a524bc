/** Draft of a top-up, with the key under which it counts once. */

/** Top-up that a person writes. The page keeps it until it was made, so that a second try has the same key. */
export interface CreditDraft {
  credits: string;
  note: string;
  key: string;
}

/** Returns an empty draft, with a key of its own. */
export function newCreditDraft(): CreditDraft {
  const random = crypto.getRandomValues(new Uint8Array(12));
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { credits: "", note: "", key: `dashboard-${hex}` };
}
