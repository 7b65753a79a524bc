/** Shows lines of a difference, with a sign and a colour for what was added and removed. */
import type { DiffLine } from "../base/text/diff";
import { AgentText } from "./AgentText";
import "./diff.css";

/** Renders the lines. */
export function DiffLines({ lines }: { lines: DiffLine[] }) {
  return (
    <div className="diff-text">
      {lines.map((line, index) => (
        <div key={index} className={`diff-${line.kind}`}><AgentText text={line.text === "" ? " " : line.text} /></div>
      ))}
    </div>
  );
}
