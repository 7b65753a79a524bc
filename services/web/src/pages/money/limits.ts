/** Reads the use of an account's limits, and ranks them: the nearest to its end first. Pure. */
import type { Schemas } from "../../api/client";
import { formatCount, formatDollars } from "../../base/text/format";

/** Name of a limit, as the API has it. */
export type LimitId = keyof Schemas["AccountLimits"];

/** Nearness of a limit to its end. */
export type Nearness = "free" | "near" | "over";

/** Use of one limit, ready to be shown. Shares are between 0 and 1, and null without a limit. */
export interface LimitRow {
  id: LimitId;
  label: string;
  allowed: string | null;
  used: string;
  reserved: string;
  left: string | null;
  usedShare: number | null;
  reservedShare: number | null;
  /** Part that is used or reserved, which may be above 1. */
  share: number | null;
}

/** Limits with their names for people, in the order of forms. */
export const LIMITS: readonly (readonly [LimitId, string])[] = [
  ["cost", "Cost"],
  ["totalTokens", "Total tokens"],
  ["inputTokens", "Input tokens"],
  ["outputTokens", "Output tokens"],
  ["requests", "Requests"],
  ["requestsPerMinute", "Requests a minute"],
  ["callsInFlight", "Calls in flight"],
];

const NEAR = 0.8;

/** Returns the use of all limits, the nearest first, and those without a limit last. */
export function readLimits(limits: Schemas["AccountLimits"]): LimitRow[] {
  const rows = LIMITS.map(([id, label]) => readLimit(id, label, limits[id]));
  return rows.sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
}

/** Returns the limit that is nearest to its end, or null if the account has none. */
export function nearestLimit(limits: Schemas["AccountLimits"]): LimitRow | null {
  const nearest = nearestShare(limits);
  const found = nearest === null ? undefined : LIMITS.find(([id]) => takenShare(limits[id]) === nearest);
  return found === undefined ? null : readLimit(found[0], found[1], limits[found[0]]);
}

/** Returns the largest part of a limit that is used or reserved, or null if the account has none. Formats nothing. */
export function nearestShare(limits: Schemas["AccountLimits"]): number | null {
  const shares = LIMITS.map(([id]) => takenShare(limits[id])).filter((share) => share !== null);
  return shares.length === 0 ? null : Math.max(...shares);
}

/** Returns how near to its end a limit is. */
export function nearnessOf(share: number | null): Nearness {
  if (share === null || share < NEAR) return "free";
  return share < 1 ? "near" : "over";
}

/** Formats a share in whole percent; what is not all is never shown as 100 %. */
export function formatShare(share: number): string {
  if (share < 1) return `${Math.min(99, Math.round(share * 100))} %`;
  return `${Math.round(share * 100)} %`;
}

type Use = Schemas["LimitUse"] | Schemas["CostUse"];

function readLimit(id: LimitId, label: string, use: Use): LimitRow {
  const show = (value: number | string) => (typeof value === "string" ? formatDollars(value) : formatCount(value));
  const row = { id, label, used: show(use.used), reserved: show(use.reserved), left: use.left === null ? null : show(use.left) };
  if (use.allowed === null) return { ...row, allowed: null, usedShare: null, reservedShare: null, share: null };
  const usedShare = Math.min(1, shareOf(Number(use.used), Number(use.allowed)));
  const share = takenShare(use) ?? 0;
  return { ...row, allowed: show(use.allowed), usedShare, reservedShare: Math.min(1, share) - usedShare, share };
}

function takenShare(use: Use): number | null {
  return use.allowed === null ? null : shareOf(Number(use.used) + Number(use.reserved), Number(use.allowed));
}

function shareOf(value: number, allowed: number): number {
  // Also for what is not a number: such a limit is worth a look.
  if (!(allowed > 0) || Number.isNaN(value)) return 1;
  return Math.max(0, value / allowed);
}
