/** Asks about the run of an answer while it is given: its place in the queue, and the calls that wait for a person. */
import { useCallback, useEffect, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { type ApiError, isAbort, toApiError } from "../../api/problem";

/** What is known of the run. */
export interface RunWatch {
  queue: Schemas["QueuePosition"] | null;
  approvals: Schemas["Approval"][];
  error: ApiError | null;
  reload: () => void;
}

const POLL_MS = 3_000;
const NOTHING: Omit<RunWatch, "reload"> = { queue: null, approvals: [], error: null };

async function look(run: string, signal: AbortSignal): Promise<Omit<RunWatch, "reload">> {
  const details = await api.get("/api/v1/runs/{run}", { path: { run }, signal });
  const waiting = new Set(details.waitingToolCalls ?? []);
  const queue = details.queue ?? null;
  if (waiting.size === 0) return { ...NOTHING, queue };
  const { approvals } = await api.get("/api/v1/approvals", { signal });
  return { queue, approvals: approvals.filter((call) => call.runId === run && call.state === "waiting"), error: null };
}

/** Follows `run`; null follows none. `hint` makes it look at once when it changes. */
export function useRunWatch(run: string | null, hint: string): RunWatch {
  const [known, setKnown] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((last) => last + 1), []);
  useEffect(() => setKnown(NOTHING), [run]);
  useEffect(() => {
    if (run === null) return;
    const abort = new AbortController();
    const ask = () => {
      if (document.hidden) return;
      look(run, abort.signal).then(setKnown, (thrown: unknown) => {
        if (!isAbort(thrown) && !abort.signal.aborted) setKnown((last) => ({ ...last, error: toApiError(thrown) }));
      });
    };
    ask();
    const timer = setInterval(ask, POLL_MS);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [run, hint, round]);
  return { ...known, reload };
}
