/** Loads what a page shows, and keeps the last good answer while a newer one cannot be had. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type ApiError, isAbort, toApiError } from "./problem";

/** Result of loading: `data` stays while `error` says why it is not newer; `staleSince` is when that began. */
export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  staleSince: number | null;
  reload: () => void;
}

type Outcome<T> = Omit<Loaded<T>, "reload"> & { key: string };

/** Calls `load` on each new `key` and on `reload()`. A null key loads nothing. */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [round, setRound] = useState(0);
  const [outcome, setOutcome] = useState<Outcome<T>>(() => begin(key ?? ""));
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    setOutcome((last) => (last.key === key ? { ...last, isLoading: true } : begin(key)));
    loader.current(abort.signal).then(
      (data) => setOutcome({ key, data, error: null, isLoading: false, staleSince: null }),
      (thrown: unknown) => {
        if (isAbort(thrown) || abort.signal.aborted) return;
        const error = toApiError(thrown);
        setOutcome((last) => ({ ...last, error, isLoading: false, staleSince: last.staleSince ?? Date.now() }));
      },
    );
    return () => abort.abort();
  }, [key, round]);
  const reload = useCallback(() => setRound((last) => last + 1), []);
  const current = key !== null && outcome.key !== key ? begin<T>(key) : outcome;
  return { data: current.data, error: current.error, isLoading: current.isLoading, staleSince: current.staleSince, reload };
}

function begin<T>(key: string): Outcome<T> {
  return { key, data: null, error: null, isLoading: true, staleSince: null };
}
