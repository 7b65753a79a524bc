/** Asks again from time to time while the page can be seen, and more seldom while the answer is a failure. */
import { useEffect } from "react";
import type { ApiError } from "./problem";
import type { Loaded } from "./useLoad";

const MIN_DELAY_SECONDS = 2;
const MAX_DELAY_SECONDS = 60;

/** Returns the seconds until the next request, or null if another one would fail the same way. */
export function pollDelay(seconds: number, error: ApiError | null): number | null {
  if (error === null) return Math.max(seconds, MIN_DELAY_SECONDS);
  if (!error.isTransient) return null;
  return Math.max(seconds, error.retryAfterSeconds ?? Math.min(seconds * 2, MAX_DELAY_SECONDS));
}

/** Loads `loaded` again `seconds` after each answer. A hidden page asks nothing, and once when it is shown again. */
export function usePoll({ isLoading, error, reload }: Pick<Loaded<unknown>, "isLoading" | "error" | "reload">, seconds: number): void {
  const delay = isLoading ? null : pollDelay(seconds, error);
  useEffect(() => {
    if (delay === null) return;
    let isDue = false;
    const ask = () => {
      isDue = true;
      if (!document.hidden) reload();
    };
    const onChange = () => {
      if (isDue) ask();
    };
    const timer = setTimeout(ask, delay * 1000);
    document.addEventListener("visibilitychange", onChange);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onChange);
    };
  }, [delay, reload, error]);
}
