/** Copies a text, and says so on the button and to people who hear the page. */
import { useEffect, useState } from "react";
import { announce } from "../base/announce";
import { visibleText } from "../base/text/marks";
import { AgentText, cutAt } from "./AgentText";

const SHOWN_MS = 2_000;

/** Properties: `what` names the text; a short button says it only to people who hear the page. */
export interface CopyButtonProps {
  text: string;
  what: string;
  form?: "whole" | "short";
}

/** Renders the button. Without a clipboard, as on plain HTTP, it says to copy by hand. */
export function CopyButton({ text, what, form = "whole" }: CopyButtonProps) {
  const [note, setNote] = useState<string | null>(null);
  useEffect(() => {
    if (note === null) return;
    const timer = setTimeout(() => setNote(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [note]);
  const say = (result: string) => {
    setNote(result);
    announce(result);
  };
  const copy = () => {
    if (!window.isSecureContext) return say("Select and copy it by hand");
    navigator.clipboard.writeText(text).then(() => say("Copied"), () => say("Select and copy it by hand"));
  };
  const name = visibleText(`Copy ${what}`);
  if (form === "whole") return <button type="button" onClick={copy}>{note ?? name}</button>;
  return (
    <button type="button" className="quiet" onClick={copy} aria-label={name}>
      {note ?? "copy"}
    </button>
  );
}

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
