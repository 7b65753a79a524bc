/** Says how a live stream stands: live, paused, lost with a countdown, refused. */
import { useEffect, useState } from "react";
import type { StreamState } from "../api/stream";
import { ErrorNote } from "./ErrorNote";

/** Renders the state; `ended` says nothing, because nothing more will come. */
export function StreamNote({ state, onRetry }: { state: StreamState; onRetry: () => void }) {
  switch (state.kind) {
    case "open":
      return <span className="live live-on">live</span>;
    case "connecting":
      return <span className="live">connecting …</span>;
    case "paused":
      return <span className="live">paused while hidden</span>;
    case "lost":
      return <Countdown until={state.retryAt} onRetry={onRetry} />;
    case "refused":
      return <ErrorNote error={state.error} onRetry={onRetry} />;
    case "ended":
      return null;
  }
}

function Countdown({ until, onRetry }: { until: number; onRetry: () => void }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return (
    <span className="live live-lost">
      connection lost, again in {seconds} s{" "}
      <button type="button" className="quiet" onClick={onRetry}>
        now
      </button>
    </span>
  );
}
