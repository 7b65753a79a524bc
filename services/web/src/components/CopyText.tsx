/** Shows a command, and copies it when a person asks for it. */
import { useState } from "react";
import { announce } from "../app/announce";
import { visibleText } from "./agent-text/marks";
import { AgentText } from "./agent-text/AgentText";

/** Renders `text` with a button that copies it. */
export function CopyText({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      announce("Copied");
      setTimeout(() => setCopied(false), 2_000);
    });
  };
  return (
    <span className="copy-text">
      <code>
        <AgentText text={text} form="inline" />
      </code>
      <button type="button" className="quiet" onClick={copy} aria-label={`Copy ${visibleText(text).slice(0, 80)}`}>
        {isCopied ? "copied" : "copy"}
      </button>
    </span>
  );
}
