/** Says how a live stream stands: live, paused, lost with the reason and a countdown, refused. */
import { useEffect, useState } from "react";
import type { StreamState } from "../api/stream";
import { AgentText } from "./AgentText";
import { ErrorNote } from "./Notes";

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
      return <Countdown lost={state} onRetry={onRetry} />;
    case "refused":
      return <ErrorNote error={state.error} onRetry={onRetry} />;
    case "ended":
      return null;
  }
}

function Countdown({ lost, onRetry }: { lost: Extract<StreamState, { kind: "lost" }>; onRetry: () => void }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((lost.retryAt - now) / 1000));
  return (
    <span className="live live-lost">
      <span>
        connection lost, again in {seconds} s: <AgentText text={lost.error.message} form="inline" />
      </span>
      <button type="button" className="quiet" onClick={onRetry}>
        now
      </button>
    </span>
  );
}
