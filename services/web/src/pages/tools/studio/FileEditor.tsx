/** Edits one file: as it is typed, as others will see it, and as it differs from what is stored. */
import { useId, useMemo, useState } from "react";
import { compareLines } from "../../../base/text/lines";
import { formatBytes } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { DiffLines } from "../../../components/DiffLines";
import { EmptyFile, SaveFile } from "./SaveFile";
import type { GatewayAgent } from "./agents";
import { type FileName, isTooLarge, sizeOf } from "./files";

/** Properties: `text` is what is typed, and `stored` what is kept. */
export interface FileEditorProps {
  path: { gateway: string; agent: string };
  name: FileName;
  stored: string;
  text: string;
  canChange: boolean;
  onText: (text: string) => void;
  /** Gets the changed agent, and the text that is stored now. */
  onSaved: (agent: GatewayAgent, text: string) => void;
}

const VIEWS = [["write", "Write"], ["preview", "Preview"], ["changes", "Changes"]] as const;

/** Renders the editor. */
export function FileEditor({ path, name, stored, text, canChange, onText, onSaved }: FileEditorProps) {
  const [view, setView] = useState<(typeof VIEWS)[number][0]>("write");
  const [asked, setAsked] = useState<"save" | "empty" | null>(null);
  const id = useId();
  const isOver = isTooLarge(text);
  const close = () => setAsked(null);
  return (
    <section className="panel stack" aria-label={name}>
      <div className="toggles" role="group" aria-label="View">
        {VIEWS.map(([key, label]) => (
          <button key={key} type="button" className="toggle" aria-pressed={key === view} onClick={() => setView(key)}>{label}</button>
        ))}
      </div>
      {view === "write" && (
        <textarea
          id={id} className="mono studio-text" rows={18} value={text} readOnly={!canChange} aria-label={`Text of ${name}`}
          aria-invalid={isOver} aria-describedby={`${id}-size`} onChange={(event) => onText(event.target.value)}
        />
      )}
      {view === "preview" && (text === "" ? <p className="muted">The file is empty.</p> : <AgentText key={text} text={text} isExact />)}
      {view === "changes" && <Changes stored={stored} text={text} />}
      <div className="bar-line">
        {canChange && (
          <>
            <button type="button" className="primary" disabled={text === stored || isOver} onClick={() => setAsked("save")}>
              Save …
            </button>
            <button type="button" className="danger" disabled={stored === ""} onClick={() => setAsked("empty")}>Empty …</button>
          </>
        )}
        <span id={`${id}-size`} className={isOver ? "hint field-error" : "hint"}>
          {formatBytes(sizeOf(text))}{isOver && ": a file has at most 256 KiB"}
        </span>
      </div>
      {asked === "save" && <SaveFile {...{ path, name, text, onSaved }} onClose={close} />}
      {asked === "empty" && <EmptyFile {...{ path, name, onSaved }} onClose={close} />}
    </section>
  );
}

/** Shows how `text` differs from `stored`. */
export function Changes({ stored, text }: { stored: string; text: string }) {
  const lines = useMemo(() => compareLines(stored, text), [stored, text]);
  return lines.length === 0 ? <p className="muted">Nothing changes.</p> : <DiffLines lines={lines} />;
}
