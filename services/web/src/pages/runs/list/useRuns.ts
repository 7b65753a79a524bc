/** Loads one page of the list with one request, and follows changes of its runs. */
import { useCallback, useEffect, useReducer, useState } from "react";
import { api } from "../../../api/client";
import type { StreamState } from "../../../api/stream";
import { type Loaded, useLoad } from "../../../api/useLoad";
import { useStream } from "../../../api/useStream";
import { announce } from "../../../base/announce";
import { plural } from "../../../base/text/format";
import type { Run, RunFilter } from "./filter";
import { type RunList, mergeChanges } from "./list";

const PAGE = 50;
const WAIT_FOR_STREAM_MS = 400;

/** List as a page shows it. */
export interface Runs {
  loaded: Loaded<unknown>;
  list: RunList | null;
  nextCursor: string | null;
  stream: { state: StreamState; retryNow: () => void };
  /** Shows the runs that wait. */
  showNew: () => void;
}

type Page = { runs: Run[]; nextCursor: string | null };
type Held = { page: Page | null; filter: RunFilter | null; list: RunList | null; takesNext: boolean };
type Action =
  | { kind: "page"; page: Page; filter: RunFilter }
  | { kind: "changes"; runs: Run[]; filter: RunFilter }
  | { kind: "take" };

const NOTHING: Held = { page: null, filter: null, list: null, takesNext: false };

function reduce(held: Held, action: Action): Held {
  switch (action.kind) {
    case "take":
      return { ...held, takesNext: true };
    case "changes":
      if (held.list === null || held.filter !== action.filter) return held;
      return { ...held, list: mergeChanges(held.list, action.runs, action.filter) };
    case "page": {
      if (held.page === action.page) return held;
      const isKept = held.filter === action.filter && !held.takesNext && held.list !== null && held.list.runs.length > 0;
      const list = isKept && held.list !== null
        ? mergeChanges(held.list, action.page.runs, action.filter)
        : { runs: action.page.runs, waiting: new Set<string>() };
      return { page: action.page, filter: action.filter, list, takesNext: false };
    }
  }
}

/** Returns the list of `filter`, which is the same object for as long as nothing in it changes. */
export function useRuns(filter: RunFilter): Runs {
  const [kept, dispatch] = useReducer(reduce, NOTHING);
  const held = kept.filter === filter ? kept : NOTHING;
  const onItems = useCallback((runs: Run[]) => dispatch({ kind: "changes", runs, filter }), [filter]);
  const stream = useStream<Run>({ path: "/api/v1/runs/changes", onItems });
  const canList = useCanList(stream.state);
  const { states, agent, account, id, cursor } = filter;
  const query = { limit: PAGE, state: states.join(","), agent, account, idPrefix: id, cursor };
  const loaded = useLoad(canList ? JSON.stringify(query) : null, (signal) => api.get("/api/v1/runs", { query, signal }));
  const { data, reload } = loaded;
  useEffect(() => {
    if (data !== null) dispatch({ kind: "page", page: data, filter });
  }, [data, filter]);
  // What changed while no stream was open is known only from another list.
  const isOpen = stream.state.kind === "open";
  const [wasOpen, setWasOpen] = useState(false);
  useEffect(() => {
    if (!isOpen) return;
    if (wasOpen) reload();
    setWasOpen(true);
  }, [isOpen]);
  const waiting = held.list?.waiting.size ?? 0;
  useEffect(() => {
    if (waiting > 0) announce(plural(waiting, "new run"));
  }, [waiting]);
  const showNew = useCallback(() => {
    dispatch({ kind: "take" });
    reload();
  }, [reload]);
  return { loaded, list: held.list, nextCursor: held.page?.nextCursor ?? null, stream, showNew };
}

/** A list that is read after its stream is open misses nothing; a stream that does not open delays it only a moment. */
function useCanList(state: StreamState): boolean {
  const [can, setCan] = useState(false);
  useEffect(() => {
    if (state.kind !== "connecting") setCan(true);
  }, [state.kind]);
  useEffect(() => {
    const timer = setTimeout(() => setCan(true), WAIT_FOR_STREAM_MS);
    return () => clearTimeout(timer);
  }, []);
  return can;
}
