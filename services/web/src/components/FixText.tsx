/** Shows a message of Sluicegate with its commands, which stand between backticks, as code. */
import { AgentText } from "./AgentText";

/** Divides a text at its backticks. Every second piece is code; a backtick without a partner stays text. */
export function splitCode(text: string): string[] {
  const pieces = text.split("`");
  if (pieces.length % 2 === 1) return pieces;
  const last = pieces.pop() ?? "";
  return [...pieces.slice(0, -1), `${pieces.at(-1) ?? ""}\`${last}`];
}

/** Renders the message. It may quote agents, so each piece is shown as one of their texts. */
export function FixText({ text }: { text: string }) {
  return splitCode(text).map((piece, index) => {
    const shown = <AgentText key={index} text={piece} form="inline" />;
    return index % 2 === 1 ? <code key={index}>{shown}</code> : shown;
  });
}
