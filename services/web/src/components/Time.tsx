/** Shows a point in time: short in the text, exact in the title. */
import { AgentText } from "./AgentText";
import { formatTime } from "../base/text/format";

/** Renders `at`, or a dash if there is none. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span className="none">–</span>;
  if (Number.isNaN(Date.parse(at))) return <AgentText text={at} form="inline" />;
  return (
    <time dateTime={at} title={at}>
      {formatTime(at)}
    </time>
  );
}
