/**
 * Keeps questions that were typed and not sent, in memory alone, so that a sign-in in between does not lose them; and the first
 * question of a new thread, on its way from the page that asks it to the page of the thread.
 */
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

/** First question of a thread. */
export interface FirstQuestion {
  text: string;
  agent: string | null;
  /** Agent of the gateway that the agent uses. */
  gatewayAgent: string | null;
}

const waiting = new Map<string, FirstQuestion>();

/** Puts the first question of `thread` aside. */
export function putFirst(thread: string, question: FirstQuestion): void {
  waiting.set(thread, question);
}

/** Returns the first question of `thread`; null if there is none, or it was sent. */
export function findFirst(thread: string): FirstQuestion | null {
  return waiting.get(thread) ?? null;
}

/** Forgets the first question of `thread`, because it is being sent. A page that is rendered twice must not lose it before. */
export function dropFirst(thread: string): void {
  waiting.delete(thread);
}
