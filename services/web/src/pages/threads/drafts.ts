/** Keeps questions that were typed and not sent, in memory alone, so that a sign-in in between does not lose them. */
import { useState } from "react";
import { useSession } from "../../base/session";

const drafts = new Map<string, string>();

/** Returns the key of what belongs to the one who is signed in. */
export function useOwner(): string {
  const { state } = useSession();
  if (state.kind !== "signedIn") return "";
  return `${state.session.principal ?? ""} ${state.session.account}`;
}

/** Keeps `text` as the draft of a thread; of a new one if `thread` is empty. */
export function keepDraft(owner: string, thread: string, text: string): void {
  if (text === "") drafts.delete(`${owner} ${thread}`);
  else drafts.set(`${owner} ${thread}`, text);
}

/** Returns the draft of a thread, and what changes it. */
export function useDraft(thread: string): [string, (text: string) => void] {
  const owner = useOwner();
  const [text, setText] = useState(() => drafts.get(`${owner} ${thread}`) ?? "");
  const change = (next: string) => {
    keepDraft(owner, thread, next);
    setText(next);
  };
  return [text, change];
}
