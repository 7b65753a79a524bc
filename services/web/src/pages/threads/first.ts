/** Hands the first question of a new thread from the page that asks it to the page of the thread. */

/** First question of a thread. */
export interface FirstQuestion {
  text: string;
  agent: string | null;
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
