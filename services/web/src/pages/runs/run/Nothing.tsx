/** Says why a list that is made of a run's events is empty: there is nothing, or the events are not here. */
import type { ReactNode } from "react";
import type { StreamState } from "../../../api/stream";
import { plural } from "../../../base/text/format";
import { EmptyState, Skeleton } from "../../../components/Notes";
import type { EventLog } from "./eventLog";

/** Events of a run, and how their stream stands. `version` rises with each change of `log`. */
export interface Source {
  log: EventLog;
  version: number;
  stream: StreamState;
  phase: "active" | "ended";
}

/** Properties: what to say if there is nothing. */
export interface NothingProps {
  source: Source;
  title: string;
  children?: ReactNode;
}

/** Renders the reason. */
export function Nothing({ source: { stream, phase, log }, title, children }: NothingProps) {
  if (log.pruned > 0) {
    return <EmptyState title="No longer kept">{plural(log.pruned, "older event")} of this run were removed.</EmptyState>;
  }
  switch (stream.kind) {
    case "lost":
      return <EmptyState title="Not known: the connection is lost">It is tried again by itself, as the head of the page says.</EmptyState>;
    case "refused":
      return <EmptyState title="Not known: the events cannot be read">The head of the page says why.</EmptyState>;
    case "open":
      // The stream of a run that has ended closes behind the last event.
      return phase === "active" ? <EmptyState title={title}>{children}</EmptyState> : <Skeleton rows={5} />;
    case "ended":
      return <EmptyState title={title}>{children}</EmptyState>;
    default:
      return <Skeleton rows={5} />;
  }
}
