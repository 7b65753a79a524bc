/** Says which freezes hold for an account, and marks it. */
import type { Schemas } from "../../api/client";
import { StateChip } from "../../components/StateChip";

/** Target of a freeze. */
export type Freeze = Schemas["Freeze"];

/** Returns what freezes the calls of `account`: the freeze of all calls, its own, or both. */
export function freezesOf(freezes: Freeze[], account: string): Freeze[] {
  return freezes.filter(({ kind, name }) => kind === "all" || (kind === "account" && name === account));
}

/** Renders a chip for each freeze that holds for the account. */
export function FreezeChips({ freezes }: { freezes: Freeze[] }) {
  return freezes.map(({ kind }) => <StateChip key={kind} state={kind === "all" ? "all frozen" : "frozen"} tone="warn" />);
}
