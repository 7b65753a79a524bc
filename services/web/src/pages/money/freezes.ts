/** Says which freezes hold for an account. Pure. */
import type { Schemas } from "../../api/client";

/** Target of a freeze. */
export type Freeze = Schemas["Freeze"];

/** Returns what freezes the calls of `account`: the freeze of all calls, its own, or both. */
export function freezesOf(freezes: Freeze[], account: string): Freeze[] {
  return freezes.filter(({ kind, name }) => kind === "all" || (kind === "account" && name === account));
}
