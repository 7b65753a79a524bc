/** Reads what a person types into the forms of an account. Pure. */
import type { Schemas } from "../../../api/client";
import { LIMITS, type LimitId } from "../limits";

/** Text of each field of the limits; empty is not a limit. */
export type LimitFields = Record<LimitId, string>;

/** Fields as they can be sent, or the field that is wrong and why. */
export type ReadLimits = { body: Schemas["LimitsOfAccount"]; errors: Partial<Record<LimitId, string>> };

const DOLLARS = /^\$?[0-9]{1,9}(\.[0-9]{1,9})?$/;

/** Returns the fields for the limits that hold now; an account that is not known yet has none. */
export function fieldsOf(limits: Schemas["AccountLimits"] | null): LimitFields {
  const fields = LIMITS.map(([id]) => [id, String(limits?.[id].allowed ?? "")]);
  return Object.fromEntries(fields) as LimitFields;
}

/** Reads all fields at once, so that each mistake is named. */
export function readLimitFields(fields: LimitFields): ReadLimits {
  const read: ReadLimits = { body: {}, errors: {} };
  for (const [id] of LIMITS) {
    const text = fields[id].trim();
    if (text === "") continue;
    if (id === "cost") {
      if (DOLLARS.test(text)) read.body.cost = text.replace("$", "");
      else read.errors.cost = "Dollars, such as 2.50, with at most 9 digits on each side of the point";
      continue;
    }
    const count = readCount(text);
    if (count === null || count < 0) read.errors[id] = "A whole number, such as 1,000,000";
    else read.body[id] = count;
  }
  return read;
}

/** Returns the limits whose value changes, each with its value before and after. */
export function changesOf(before: LimitFields, after: LimitFields): { label: string; from: string; to: string }[] {
  const word = (text: string) => (text.trim() === "" ? "no limit" : text.trim());
  const changed = LIMITS.filter(([id]) => before[id].trim() !== after[id].trim());
  return changed.map(([id, label]) => ({ label, from: word(before[id]), to: word(after[id]) }));
}

/** Reads a whole number, with or without separators. Returns null for anything else, or what no number holds exactly. */
export function readCount(text: string): number | null {
  const plain = text.trim();
  if (!/^-?(\d+|\d{1,3}([,_ ]\d{3})+)$/.test(plain)) return null;
  const count = Number(plain.replace(/[,_ ]/g, ""));
  return Number.isSafeInteger(count) ? count : null;
}
