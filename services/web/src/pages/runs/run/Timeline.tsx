/** Times of a run's last attempt: what waited, what worked, and for how long. */
import { useEffect, useMemo, useState } from "react";
import { useLoadOn } from "../../../api/usePages";
import { plural } from "../../../base/text/format";
import { More } from "../../../components/More";
import { SvgBars } from "../../../components/SvgBars";
import { isActive } from "../figures";
import { useCalls } from "./calls";
import { Nothing, type Source } from "./Nothing";
import { timeline } from "./timeline";
import { reportedTools, useTools } from "./tools";
import type { RunDetails } from "./useRun";

const LEGEND = [["wait", "waits"], ["phase", "phase"], ["call", "model call"], ["tool", "tool"], ["bad", "failed"]] as const;

const MAX_LOADED = 1_000;

/** Renders the bars of `run`. */
export function Timeline({ run, source }: { run: RunDetails; source: Source }) {
  const { log, version } = source;
  const calls = useCalls(run);
  const host = useTools(run);
  // The last calls have bars, and the oldest come first.
  useLoadOn(calls, (calls.items?.length ?? 0) < MAX_LOADED);
  useLoadOn(host, (host.items?.length ?? 0) < MAX_LOADED);
  const now = useTicks(isActive(run));
  const { bars, leftOut } = useMemo(
    () => {
      const tools = [...(host.items ?? []), ...reportedTools(log.toolEvents)];
      return timeline({ run, statuses: log.statuses, ends: log.ends, calls: calls.items ?? [], tools, now });
    },
    [run, log, version, calls.items, host.items, now],
  );
  if (log.statuses.length === 0 && !isActive(run)) {
    return (
      <Nothing source={source} title="The times are no longer kept">
        Events of old runs are removed; their figures stay above.
      </Nothing>
    );
  }
  return (
    <div className="panel">
      <SvgBars label={`Timeline of attempt ${run.attempt + 1}`} bars={bars} />
      <p className="legend">
        {LEGEND.map(([tone, meaning]) => (
          <span key={tone}>
            <span className={`swatch swatch-${tone}`} /> {meaning}
          </span>
        ))}
      </p>
      {leftOut > 0 && <p className="hint">Without {plural(leftOut, "earlier call")} of models and tools.</p>}
      <More pages={calls} />
      <More pages={host} />
    </div>
  );
}

/** Returns the time, which moves on every second as long as `isOn`. */
function useTicks(isOn: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}
