/** Shows points in time and how long something took. */
import { useEffect, useState } from "react";
import { formatDuration, formatTime } from "../base/text/format";
import { AgentText } from "./AgentText";

/** Shows a point in time, short in the text and exact in the title, or a dash if there is none. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span className="none">–</span>;
  if (Number.isNaN(Date.parse(at))) return <AgentText text={at} form="inline" />;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}

/** Renders the time from `from` to `to`; while `to` is null it counts on. */
export function Elapsed({ from, to }: { from: string | null; to: string | null }) {
  const [now, setNow] = useState(Date.now);
  const counts = from !== null && to === null;
  useEffect(() => {
    if (!counts) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [counts]);
  if (from === null) return <span className="none">–</span>;
  const end = to === null ? Math.max(now, Date.parse(from)) : Date.parse(to);
  const ms = end - Date.parse(from);
  return <span className="elapsed">{formatDuration(counts ? Math.floor(ms / 1000) * 1000 : ms)}</span>;
}
