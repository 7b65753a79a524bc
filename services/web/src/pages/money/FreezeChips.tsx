/** Marks an account whose calls are frozen. */
import { StateChip } from "../../components/StateChip";
import type { Freeze } from "./freezes";

/** Renders a chip for each freeze that holds for the account. */
export function FreezeChips({ freezes }: { freezes: Freeze[] }) {
  return freezes.map(({ kind }) => <StateChip key={kind} state={kind === "all" ? "all frozen" : "frozen"} tone="warn" />);
}
