/** Gives the time to countdowns, once a second, while the page can be seen. */
import { useEffect, useState } from "react";

const TICK_MS = 1_000;

/** Returns the time, which moves on every second as long as `isOn`. */
export function useNow(isOn: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isOn) return;
    setNow(Date.now());
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}
