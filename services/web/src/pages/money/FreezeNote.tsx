/** Says what a freeze or a thaw has done. */
import { AgentText } from "../../components/AgentText";

/** Change that was made, with what a person has to know of it. */
export interface FreezeChange {
  text: string;
  isWarning: boolean;
}

/** Renders the change; null is nothing. */
export function FreezeNote({ change }: { change: FreezeChange | null }) {
  if (change === null) return null;
  return (
    <p className={change.isWarning ? "note" : "hint"}>
      <AgentText text={change.text} form="inline" />
    </p>
  );
}
