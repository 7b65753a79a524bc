/** Shows a command, and copies it when a person asks for it. */
import { AgentText, cutAt } from "./AgentText";
import { CopyButton } from "./CopyButton";

const NAME_CHARS = 80;

/** Renders `text` with a button that copies it. */
export function CopyText({ text }: { text: string }) {
  return (
    <span className="copy-text">
      <code>
        <AgentText text={text} form="inline" />
      </code>
      <CopyButton text={text} what={cutAt(text, NAME_CHARS)} form="short" />
    </span>
  );
}
