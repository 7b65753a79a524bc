/** Reads calls that wait for a decision: their ages, what is new, and their arguments. Pure. */
import type { Schemas } from "../../api/client";

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

/**
 * Spreads JSON over lines without reading it: every character of the text stays, and only white space outside of strings
 * changes. So a doubled key or a long number is shown as the tool gets it.
 */
export function spreadJson(text: string): string {
  let out = "";
  let depth = 0;
  let inString = false;
  const line = () => `\n${"  ".repeat(Math.min(depth, 20))}`;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (inString) {
      out += char;
      if (char === "\\") out += text.charAt((at += 1));
      else if (char === '"') inString = false;
    } else if (char === '"') {
      inString = true;
      out += char;
    } else if (char === "{" || char === "[") {
      const end = /^\s*[}\]]/.exec(text.slice(at + 1, at + 64));
      if (end !== null) {
        out += char + end[0].trim();
        at += end[0].length;
      } else {
        depth += 1;
        out += char + line();
      }
    } else if (char === "}" || char === "]") {
      depth = Math.max(0, depth - 1);
      out += line() + char;
    } else if (char === ",") {
      out += char + line();
    } else if (char === ":") {
      out += ": ";
    } else if (!/[ \t\r\n]/.test(char)) {
      out += char;
    }
  }
  return out;
}
