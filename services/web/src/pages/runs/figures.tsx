/**
 * Shows figures of runs, says which have not ended, and makes links to other systems, only where the server's configuration
 * allows them.
 */
import { encodePart } from "../../api/client";
import { formatCount, formatDollars, plural } from "../../base/text/format";
import { webAddress } from "../../base/text/links";
import type { Run } from "./list/filter";

/** States of a run before its end, in their order. */
export const ACTIVE_STATES: Run["state"][] = ["queued", "preparing", "starting", "running", "collecting", "settling"];

/** Returns whether a run has not ended. */
export function isActive({ state }: { state: string }): boolean {
  return ACTIVE_STATES.some((active) => active === state);
}

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

/** Returns the address of a trace, or null without a template or a trace. */
export function traceLink(template: string | null, traceId: string | null): URL | null {
  if (template === null || traceId === null || !template.includes("{trace}")) return null;
  return webAddress(template.replace("{trace}", () => encodePart(traceId)));
}

/** Returns `address` if it is https, of exactly the host `host`, and without a user name; else null: then it is text. */
export function pullRequestLink(address: string, host: string | null): URL | null {
  const url = webAddress(address);
  if (url === null || host === null || url.protocol !== "https:" || url.host !== host) return null;
  return url.username === "" && url.password === "" ? url : null;
}
