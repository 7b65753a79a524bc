/** Times of a run's last attempt: what waited, what worked, and for how long. */
import { useEffect, useMemo, useState } from "react";
import { EmptyState } from "../../components/EmptyState";
import { More } from "../../components/More";
import { SvgBars } from "../../components/SvgBars";
import { isActive } from "../runs/active";
import { useCalls } from "./calls";
import type { EventLog } from "./eventLog";
import { timeline } from "./timeline";
import { reportedTools } from "./tools";
import type { RunDetails } from "./useRun";

const LEGEND = [["wait", "waits"], ["phase", "phase"], ["call", "model call"], ["tool", "tool"], ["bad", "failed"]] as const;

/** Renders the bars of `run`. */
export function Timeline({ run, log, version }: { run: RunDetails; log: EventLog; version: number }) {
  const calls = useCalls(run);
  const [now, setNow] = useState(Date.now);
  const active = isActive(run);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [active]);
  const bars = useMemo(
    () => {
      const { statuses, ends, toolEvents } = log;
      return timeline({ run, statuses, ends, calls: calls.items ?? [], tools: reportedTools(toolEvents), now });
    },
    [run, log, version, calls.items, now],
  );
  if (log.statuses.length === 0 && !active) {
    return <EmptyState title="The times are no longer kept">Events of old runs are removed; their figures stay above.</EmptyState>;
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
      <More pages={calls} />
    </div>
  );
}
