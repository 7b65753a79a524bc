/** Lists threads, the last changed first. The last list is kept in memory, so that a change of page does not blink. */
import { useCallback, useEffect, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { type ApiError, toApiError } from "../../api/problem";
import { useOwner } from "./drafts";

/** Threads as far as they were read. */
export interface Threads {
  list: Schemas["Thread"][] | null;
  error: ApiError | null;
  hasMore: boolean;
  reload: () => void;
  more: () => void;
  remove: (thread: string) => Promise<void>;
}

type Page = Schemas["ThreadPage"];

let kept: { owner: string; page: Page } | null = null;
const LIMIT = 50;

/** Returns the threads of the account. */
export function useThreads(): Threads {
  const owner = useOwner();
  const [page, setPage] = useState<Page | null>(() => (kept?.owner === owner ? kept.page : null));
  const [error, setError] = useState<ApiError | null>(null);
  const read = useCallback(async (cursor: string | null, before: Schemas["Thread"][]) => {
    try {
      const query = cursor === null ? { limit: LIMIT } : { limit: LIMIT, cursor };
      const next = await api.get("/api/v1/threads", { query });
      const known = new Set(before.map((thread) => thread.stateKey));
      const all = { ...next, threads: [...before, ...next.threads.filter((thread) => !known.has(thread.stateKey))] };
      kept = { owner, page: all };
      setPage(all);
      setError(null);
    } catch (thrown) {
      setError(toApiError(thrown));
    }
  }, [owner]);
  const reload = useCallback(() => void read(null, []), [read]);
  useEffect(reload, [reload]);
  const remove = async (thread: string) => {
    await api.delete("/api/v1/threads/{thread}", { path: { thread } });
    await read(null, []);
  };
  const more = () => void read(page?.nextCursor ?? null, page?.threads ?? []);
  return { list: page?.threads ?? null, error, hasMore: (page?.nextCursor ?? null) !== null, reload, more, remove };
}
