/**
 * Question before a one-time link replaces a session. A page elsewhere can open a link of its own principal: without the
 * question a person would go on as that one, and give its account what they enter.
 */
import type { SessionState } from "../../../base/session";

/** Returns the principal whose session the link would replace; null if it replaces none. */
export function replacedBy(linkCode: string | null, state: SessionState): string | null {
  if (linkCode === null || state.kind !== "signedIn") return null;
  return state.session.principal;
}

/** Asks whether the link shall replace the session of `principal`. */
export function LinkQuestion({ principal, onUse, onStay }: { principal: string; onUse: () => void; onStay: () => void }) {
  return (
    <main className="alone signin">
      <h1>Sign in by this link?</h1>
      <p>
        You are signed in as <strong>{principal}</strong>. The link signs you in anew, perhaps as another principal. Use it only if you
        have got it from <code>sluice dashboard</code> yourself.
      </p>
      <button type="button" className="primary" autoFocus onClick={onStay}>Stay signed in as {principal}</button>{" "}
      <button type="button" onClick={onUse}>Use the link</button>
    </main>
  );
}
