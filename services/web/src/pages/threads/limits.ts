/** Says what an account has left of its limits, the nearest limit first. */
import type { Schemas } from "../../api/client";
import { limitCommand } from "../../base/text/commands";
import { formatCount, formatDollars } from "../../base/text/format";
import { LIMITS } from "../money/limits";

/** One limit that applies. `share` is what is left of it, from 0 to 1. */
export interface LimitLine {
  id: string;
  label: string;
  left: string;
  allowed: string;
  share: number;
  /** What helps once nothing is left. */
  help: string;
}

/** Returns the limits that apply to an account. */
export function limitLines({ account, limits }: Schemas["Account"]): LimitLine[] {
  const lines = LIMITS.flatMap(([id, label]) => {
    const { allowed, left } = limits[id];
    if (allowed === null || left === null) return [];
    const form = (value: string | number) => (typeof value === "string" ? formatDollars(value) : formatCount(value));
    const command = limitCommand(account, id);
    const help = command === null ? "More is allowed again in a moment." : `An operator sets it: ${command}`;
    const share = Number(allowed) > 0 ? Math.min(1, Math.max(0, Number(left) / Number(allowed))) : 0;
    return [{ id, label, left: form(left), allowed: form(allowed), share, help }];
  });
  return lines.sort((one, other) => one.share - other.share);
}
