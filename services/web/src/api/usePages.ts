/** Loads a list page by page: the first at once, each further one when a person asks for it. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type ApiError, isAbort, toApiError } from "./problem";

/** Page of a list; a null cursor says that it is the last. */
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** Items so far. `more` is null if there are no others. */
export interface Pages<T> {
  items: T[] | null;
  error: ApiError | null;
  isLoading: boolean;
  more: (() => void) | null;
  reload: () => void;
}

type Held<T> = { key: string; items: T[] | null; next: string | null; error: ApiError | null; wants: string | null | undefined };

/** Loads the list that `key` names. For another key it begins anew, and shows the items so far until it has others. */
export function usePages<T>(key: string, load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>): Pages<T> {
  const [held, setHeld] = useState<Held<T>>({ key, items: null, next: null, error: null, wants: null });
  const loader = useRef(load);
  loader.current = load;
  const wants = held.key === key ? held.wants : null;
  useEffect(() => {
    if (wants === undefined) return;
    const abort = new AbortController();
    loader.current(wants ?? undefined, abort.signal).then(
      ({ items, nextCursor }) =>
        setHeld((last) => ({
          key, next: nextCursor, error: null, wants: undefined,
          items: wants === null ? items : [...(last.items ?? []), ...items],
        })),
      (thrown: unknown) => {
        if (isAbort(thrown) || abort.signal.aborted) return;
        setHeld((last) => ({ ...last, key, error: toApiError(thrown), wants: undefined }));
      },
    );
    return () => abort.abort();
  }, [key, wants]);
  const { next } = held;
  const more = useCallback(() => setHeld((last) => ({ ...last, wants: last.next })), []);
  const reload = useCallback(() => setHeld((last) => ({ ...last, wants: null })), []);
  return { items: held.items, error: held.error, isLoading: wants !== undefined, more: next === null ? null : more, reload };
}
