/** Loads a list page by page: the first at once, each further one when a person asks for it. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Held, type Page, beginList, withFailure, withPage } from "./pageList";
import { type ApiError, isAbort, toApiError } from "./problem";

/** Items so far. `more` is null if there are no others; `retry` asks again for the page that failed. */
export interface Pages<T> {
  items: T[] | null;
  error: ApiError | null;
  isLoading: boolean;
  more: (() => void) | null;
  retry: () => void;
  reload: () => void;
}

/** Loads the list that `key` names. For another key it begins anew, and shows the items so far until it has others. */
export function usePages<T>(key: string, load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>): Pages<T> {
  const [held, setHeld] = useState<Held<T>>(() => beginList(key));
  const loader = useRef(load);
  loader.current = load;
  const wants = held.key === key ? held.wants : null;
  useEffect(() => {
    if (wants === undefined) return;
    const abort = new AbortController();
    loader.current(wants ?? undefined, abort.signal).then(
      (page) => setHeld((last) => withPage(last, { key, wants }, page)),
      (thrown: unknown) => {
        if (isAbort(thrown) || abort.signal.aborted) return;
        setHeld((last) => withFailure(last, { key, wants }, toApiError(thrown)));
      },
    );
    return () => abort.abort();
  }, [key, wants]);
  const { next, items, error } = held;
  const more = useCallback(() => setHeld((last) => ({ ...last, wants: last.next })), []);
  const retry = useCallback(() => setHeld((last) => ({ ...last, wants: last.failed })), []);
  const reload = useCallback(() => setHeld((last) => ({ ...last, wants: null })), []);
  return { items, error, isLoading: wants !== undefined, more: next === null ? null : more, retry, reload };
}

/** Loads further pages as long as `isWanted`; a failure ends that. */
export function useLoadOn<T>({ more, isLoading, error }: Pages<T>, isWanted: boolean): void {
  const isNext = isWanted && !isLoading && error === null;
  useEffect(() => {
    if (isNext) more?.();
  }, [isNext, more]);
}
