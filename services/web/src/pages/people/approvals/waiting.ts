/** Reads calls that wait for a decision: their ages, what is new, and the time for countdowns. */
import { useEffect, useState } from "react";
import type { Schemas } from "../../../api/client";

/** Call that waits, or was decided. */
export type Approval = Schemas["Approval"];

/** What became of a call that was shown. */
export interface Outcome {
  approval: Approval;
  text: string;
  tone: "good" | "bad" | "warn" | "idle";
}

/** Returns the key of a call. */
export function keyOf({ runId, callId }: Approval): string {
  return `${runId} ${callId}`;
}

/** Returns the agent of a gateway that asks to run a command; null for calls of host tools. */
export function agentOf({ gateway, gatewayAgent }: Approval): { gateway: string; agent: string } | null {
  return gateway === null || gatewayAgent === null ? null : { gateway, agent: gatewayAgent };
}

/** Formats whole seconds for a countdown, such as `9 m 05 s`, so that its length stays nearly the same. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} m`;
}

/** Returns the seconds until a call is denied by itself, or null if it waits without an end. */
export function secondsLeft({ decideBy }: Approval, now: number): number | null {
  const end = decideBy === null ? Number.NaN : Date.parse(decideBy);
  return Number.isNaN(end) ? null : (end - now) / 1000;
}

/** Compares two lists: calls that are new, and those that no longer wait. */
export function compare(before: Approval[], after: Approval[]): { came: Approval[]; left: Approval[] } {
  const keys = (list: Approval[]) => new Set(list.map(keyOf));
  const [old, current] = [keys(before), keys(after)];
  return { came: after.filter((call) => !old.has(keyOf(call))), left: before.filter((call) => !current.has(keyOf(call))) };
}

/** Returns the calls that wait, without those decided here. A call that was only missing from one list is back. */
export function stillWaiting(listed: Approval[], outcomes: Outcome[]): Approval[] {
  const decided = new Set(outcomes.filter((outcome) => outcome.tone !== "idle").map((outcome) => keyOf(outcome.approval)));
  return listed.filter((approval) => !decided.has(keyOf(approval)));
}

const TICK_MS = 1_000;

/** Returns the time, which moves on every second as long as `isOn` and the page can be seen. */
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
