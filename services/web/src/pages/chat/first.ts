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

/** Returns the first question of `thread` once; null if there is none. */
export function takeFirst(thread: string): FirstQuestion | null {
  const question = waiting.get(thread) ?? null;
  waiting.delete(thread);
  return question;
}
