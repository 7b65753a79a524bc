/** Knows how often pages without a stream ask again. */
import { useEffect, useState } from "react";
import { sendJson } from "../../api/client";
import type { Dashboard, PollSeconds } from "./types";

const DEFAULTS: PollSeconds = { system: 10, gateways: 30, approvals: 5 };
const MIN_SECONDS = 2;
let known: Promise<PollSeconds> | null = null;

/** Returns the seconds between two requests of a page. The server says them once; until then the defaults hold. */
export function usePollSeconds(part: keyof PollSeconds): number {
  const [seconds, setSeconds] = useState(DEFAULTS);
  useEffect(() => {
    let isShown = true;
    known ??= sendJson<Dashboard>("get", "/api/v1/dashboard").then((dashboard) => dashboard.pollSeconds);
    known.then(
      (read) => isShown && setSeconds({ ...DEFAULTS, ...read }),
      () => {
        known = null;
      },
    );
    return () => {
      isShown = false;
    };
  }, []);
  return Math.max(MIN_SECONDS, seconds[part]);
}
