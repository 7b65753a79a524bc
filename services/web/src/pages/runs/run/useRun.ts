/** Loads one run, follows its events, and reads the run again when they say that it changed. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Schemas, api, buildPath } from "../../../api/client";
import type { StreamState } from "../../../api/stream";
import { type Loaded, useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { useStream } from "../../../api/useStream";
import { announce } from "../../../base/announce";
import { isActive } from "../figures";
import { EventLog } from "./eventLog";
import type { RunEvent } from "./eventRow";

const RENDER_MS = 100;
const RELOAD_MS = 300;
// Receipts and pull requests come moments after the end of a run.
const SETTLED_MS = 3_000;
const BEHIND_SECONDS = 2;
const CHANGES = new Set<RunEvent["type"]>(["status", "commits", "done", "error"]);

/** Details of a run. */
export type RunDetails = Schemas["RunDetails"];

/** Run with its events. `version` rises with each change of `log`. */
export interface FollowedRun {
  loaded: Loaded<RunDetails>;
  log: EventLog;
  version: number;
  stream: { state: StreamState; retryNow: () => void };
  /** Reads everything again after an action. */
  refresh: () => void;
}

const isLast = (event: RunEvent) => event.type === "done" || event.type === "error";

/** Follows the run with the id `run`. */
export function useRun(run: string): FollowedRun {
  const log = useRef(new EventLog()).current;
  const [version, setVersion] = useState(0);
  const [round, setRound] = useState(0);
  const loaded = useLoad<RunDetails>(run, (signal) => api.get("/api/v1/runs/{run}", { path: { run }, signal }));
  const { data, reload } = loaded;
  const timers = useRef<{ render?: ReturnType<typeof setTimeout>; reload?: ReturnType<typeof setTimeout> }>({});
  useEffect(() => () => { clearTimeout(timers.current.render); clearTimeout(timers.current.reload); }, []);
  const latest = useRef(data);
  latest.current = data;
  const onItems = useCallback((events: RunEvent[]) => {
    log.append(events);
    timers.current.render ??= setTimeout(() => {
      delete timers.current.render;
      setVersion((count) => count + 1);
    }, RENDER_MS);
    const known = latest.current;
    const isNews = known === null || isActive(known);
    if (!isNews || !events.some((event) => CHANGES.has(event.type))) return;
    clearTimeout(timers.current.reload);
    timers.current.reload = setTimeout(reload, RELOAD_MS);
  }, [log, reload]);
  const path = buildPath("/api/v1/runs/{run}/events", { run });
  const after = log.lastSeq;
  const stream = useStream<RunEvent>({ path, onItems, isLast, round, ...(after === undefined ? {} : { after }) });
  useEffect(() => {
    if (stream.state.kind === "connecting") log.reconnected();
  }, [log, stream.state.kind]);
  usePoll({ ...loaded, isLoading: loaded.isLoading || !isBehind(loaded, stream.state.kind) }, BEHIND_SECONDS);
  useEnd(data, reload);
  const refresh = useCallback(() => {
    reload();
    setRound((count) => count + 1);
  }, [reload]);
  return { loaded, log, version, stream, refresh };
}

/** Announces the end of a run that was active, and reads it once more when its receipts have come. */
function useEnd(run: RunDetails | null, reload: () => void): void {
  const wasActive = useRef(false);
  const active = run !== null && isActive(run);
  const state = run?.state;
  useEffect(() => {
    if (active) wasActive.current = true;
    if (state === undefined || active || !wasActive.current) return;
    wasActive.current = false;
    announce(`The run has ended: ${state.replaceAll("_", " ")}`);
    const timer = setTimeout(reload, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [active, state, reload]);
}

/** Returns whether the last request failed, or the events have ended and the run is not known to have. */
export function isBehind({ data, error }: Pick<Loaded<RunDetails>, "data" | "error">, stream: StreamState["kind"]): boolean {
  return data !== null && (error !== null || (stream === "ended" && isActive(data)));
}
