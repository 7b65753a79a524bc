/** Keeps questions that were typed and not sent, in memory alone, so that a sign-in in between does not lose them. */
import { useState } from "react";
import { useSession } from "../../app/session";

const drafts = new Map<string, string>();

/** Returns the key of what belongs to the one who is signed in. */
export function useOwner(): string {
  const { state } = useSession();
  if (state.kind !== "signedIn") return "";
  return `${state.session.principal ?? ""} ${state.session.account}`;
}

/** Returns the draft of a thread, and what changes it. */
export function useDraft(thread: string): [string, (text: string) => void] {
  const key = `${useOwner()} ${thread}`;
  const [text, setText] = useState(() => drafts.get(key) ?? "");
  const change = (next: string) => {
    if (next === "") drafts.delete(key);
    else drafts.set(key, next);
    setText(next);
  };
  return [text, change];
}
