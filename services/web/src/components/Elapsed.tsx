/** Shows how long something took, or has taken so far. */
import { useEffect, useState } from "react";
import { formatDuration } from "../base/text/format";

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
