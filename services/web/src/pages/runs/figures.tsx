/** Figures of runs, as lists and pages show them. */
import { formatCount, formatDollars, plural } from "../../base/text/format";
import type { Run } from "./list/filter";

/** Number of calls, and how many more were refused. */
export function CallCount({ calls, refused }: { calls: number; refused: number }) {
  return (
    <>
      {formatCount(calls)}
      {refused > 0 && <span className="refused-count"> +{formatCount(refused)} refused</span>}
    </>
  );
}

/** Cost of receipts. Receipts without a price are named, because the sum is too low then. */
export function Cost({ receipts }: { receipts: NonNullable<Run["receipts"]> }) {
  const { cost, unpriced, count } = receipts;
  if (count > 0 && unpriced === count) return <span className="muted">no price</span>;
  return (
    <>
      {formatDollars(cost)}
      {unpriced > 0 && (
        <abbr className="unpriced" title={`${plural(unpriced, "receipt")} without a price: the cost is higher`}>
          {" "}
          +?
        </abbr>
      )}
    </>
  );
}
