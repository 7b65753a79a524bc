/** List that is loaded page by page: its items so far, and what is loaded next. Pure. */
import type { ApiError } from "./problem";

/** Page of a list; a null cursor says that it is the last. */
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** Page that was asked for: that behind the cursor `wants`, or the first one. */
export interface Asked {
  key: string;
  wants: string | null;
}

/** List of the key `key`. Nothing is loading if `wants` is undefined; `failed` is the cursor of the page that failed last. */
export interface Held<T> {
  key: string;
  items: T[] | null;
  next: string | null;
  error: ApiError | null;
  wants: string | null | undefined;
  failed: string | null;
}

/** Returns a list whose first page is loading. */
export function beginList<T>(key: string): Held<T> {
  return { key, items: null, next: null, error: null, wants: null, failed: null };
}

/** Returns the list with a page that came. The first page replaces what was there. */
export function withPage<T>(held: Held<T>, { key, wants }: Asked, { items, nextCursor }: Page<T>): Held<T> {
  const all = wants === null ? items : [...(held.items ?? []), ...items];
  return { key, items: all, next: nextCursor, error: null, wants: undefined, failed: null };
}

/** Returns the list with a page that failed. The pages that were read stay. */
export function withFailure<T>(held: Held<T>, { key, wants }: Asked, error: ApiError): Held<T> {
  return { ...held, key, error, wants: undefined, failed: wants };
}
