/** Events of a run: any number of them, by kind and text, with jumps to failures and to the end. */
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useShortcuts } from "../../../base/keys";
import { useLocation } from "../../../base/router";
import { AgentText } from "../../../components/AgentText";
import { EmptyState } from "../../../components/Notes";
import { Time } from "../../../components/Time";
import { VirtualList, type VirtualListHandle } from "../../../components/VirtualList";
import { filterRows, nextFailure } from "./eventLog";
import { type EventRow, ROW_KINDS, type RowKind } from "./eventRow";
import { Nothing, type Source } from "./Nothing";

const ROW_PX = 30;
const FIRST_CHARS = 2_000;
const TYPING_MS = 200;
const LABELS: Record<RowKind, string> = {
  phase: "Phases", text: "Text", tool: "Tools", log: "Output", usage: "Usage", gap: "Gaps", end: "Ends",
};

/** Renders the events. */
export function Events({ source }: { source: Source }) {
  const { log, version } = source;
  const { query, setQuery } = useLocation();
  const kindText = query.get("kind") ?? "";
  const find = query.get("find") ?? "";
  const kinds = useMemo(() => ROW_KINDS.filter((kind) => kindText.split(",").includes(kind)), [kindText]);
  const rows = useMemo(() => filterRows(log.rows, kinds, find), [log, version, kinds, find]);
  const list = useRef<VirtualListHandle>(null);
  const [found, setFound] = useState<string | null>(null);
  const jump = () => {
    const next = nextFailure(rows, found);
    if (next === null) return;
    setFound(next.key);
    list.current?.scrollTo(rows.indexOf(next));
  };
  const toEnd = () => list.current?.scrollTo(rows.length);
  useShortcuts([
    { key: "f", label: "Next failure", run: jump },
    { key: "e", label: "Last event", run: toEnd },
  ]);
  const failures = rows.filter((row) => row.isFailure).length;
  const [cleared, setCleared] = useState(0);
  const clear = () => {
    setQuery({ kind: null, find: null });
    setCleared(cleared + 1);
  };
  return (
    <>
      <EventFilter key={cleared} kinds={kinds} find={find} count={rows.length}>
        <button type="button" onClick={jump} disabled={failures === 0}>
          Next failure ({failures})
        </button>
        <button type="button" onClick={toEnd}>
          To the end
        </button>
      </EventFilter>
      {rows.length === 0 && log.rows.length > 0 && <EmptyState title="No event matches" onClear={clear} />}
      {log.rows.length === 0 && <Nothing source={source} title="No events">They appear here as they happen.</Nothing>}
      {rows.length > 0 && (
        <VirtualList
          label="Events" items={rows} keyOf={(row) => row.key} estimate={ROW_PX} handle={list} follows
          render={(row) => <EventRowView row={row} isFound={row.key === found} />}
        />
      )}
    </>
  );
}

interface EventFilterProps {
  kinds: RowKind[];
  find: string;
  count: number;
  children: ReactNode;
}

function EventFilter({ kinds, find, count, children }: EventFilterProps) {
  const { setQuery } = useLocation();
  const search = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(find);
  // Browsers bound how often a page may change its address.
  useEffect(() => {
    if (text === find) return;
    const timer = setTimeout(() => setQuery({ find: text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, find]);
  useShortcuts([{ key: "/", label: "Find in the events", run: () => search.current?.focus() }]);
  return (
    <div className="bar-line">
      <div className="toggles" role="group" aria-label="Kinds of events">
        {ROW_KINDS.map((kind) => (
          <button
            key={kind} type="button" className="toggle" aria-pressed={kinds.includes(kind)}
            onClick={() => setQuery({ kind: toggle(kinds, kind).join(",") })}
          >
            {LABELS[kind]}
          </button>
        ))}
      </div>
      <input
        ref={search} type="search" className="find" aria-label="Find in the events" placeholder="find" value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <span className="muted num">{count.toLocaleString("en")} rows</span>
      {children}
    </div>
  );
}

function toggle(kinds: RowKind[], kind: RowKind): RowKind[] {
  return kinds.includes(kind) ? kinds.filter((other) => other !== kind) : [...kinds, kind];
}

function EventRowView({ row, isFound }: { row: EventRow; isFound: boolean }) {
  const classes = `event event-${row.kind}${row.isFailure ? " event-failed" : ""}${isFound ? " event-found" : ""}`;
  return (
    <div className={classes}>
      <span className="event-seq num">{row.seq ?? "live"}</span>
      <span className="event-at"><Time at={row.at} /></span>
      <span className="event-label">
        {row.isFailure && <span aria-hidden="true">✕ </span>}
        <AgentText text={row.label} form="inline" />
      </span>
      <div className="event-text">
        <AgentText text={row.text} cutBytes={row.cutBytes} firstChars={FIRST_CHARS} />
      </div>
    </div>
  );
}
