/** Gives an account credits, or takes some back. A repeat with the same idempotency key counts once. */
import { useState } from "react";
import { type Schemas, buildPath, send } from "../../../api/client";
import { announce } from "../../../base/announce";
import { formatCount } from "../../../base/text/format";
import { Confirm } from "../../../components/Dialog";
import { readCount } from "./fields";

/** Top-up that a person writes. The page keeps it until it was made, so that a second try has the same key. */
export interface CreditDraft {
  credits: string;
  note: string;
  key: string;
}

/** Properties: `onDone` gets what was done. */
export interface CreditDialogProps {
  account: string;
  draft: CreditDraft;
  onChange: (draft: CreditDraft) => void;
  onDone: (text: string) => void;
  onClose: () => void;
}

/** Renders the form. */
export default function CreditDialog({ account, draft, onChange, onDone, onClose }: CreditDialogProps) {
  const [isTouched, setTouched] = useState(false);
  const credits = readCount(draft.credits);
  const isWrong = isTouched && draft.credits.trim() !== "" && (credits === null || credits === 0);
  const isReady = credits !== null && credits !== 0 && draft.key.trim() !== "";
  const give = async () => {
    if (credits === null) return;
    const note = draft.note.trim();
    const body: Schemas["NewCredits"] = { credits, ...(note === "" ? {} : { note }) };
    const response = await send("post", buildPath("/api/v1/accounts/{account}/credits", { account }), {
      body: JSON.stringify(body), headers: { "idempotency-key": draft.key.trim() },
    });
    const { balance } = (await response.json()) as Schemas["CreditedAccount"];
    const before = response.status === 200 ? "The same top-up was made before; nothing changed. " : "";
    const text = `${before}The balance is ${formatCount(balance.credits)} credits.`;
    announce(text);
    onDone(text);
  };
  const isTaking = credits !== null && credits < 0;
  return (
    <Confirm
      title={isTaking ? "Take credits back" : "Give credits"} action={isTaking ? "Take back" : "Give"} tone={isTaking ? "danger" : "normal"}
      isReady={isReady} onConfirm={give} onClose={onClose}
    >
      <div className="field">
        <label htmlFor="credits">Credits, a whole number; a negative one takes them back</label>
        <input
          id="credits" value={draft.credits} required autoComplete="off" onBlur={() => setTouched(true)} aria-invalid={isWrong}
          aria-describedby="credits-read" onChange={(event) => onChange({ ...draft, credits: event.target.value })}
        />
        <span id="credits-read" className={isWrong ? "field-error" : "hint"} aria-live="polite">
          {isWrong ? "A whole number other than 0, such as 5,000,000" : readBack(credits)}
        </span>
      </div>
      <label className="field">
        <span>Note, for the statement</span>
        <input
          value={draft.note} maxLength={256} autoComplete="off"
          onChange={(event) => onChange({ ...draft, note: event.target.value })}
        />
      </label>
      <label className="field">
        <span>Idempotency key: with the same key it counts once</span>
        <input
          value={draft.key} required maxLength={256} autoComplete="off" spellCheck={false} className="mono"
          onChange={(event) => onChange({ ...draft, key: event.target.value })}
        />
      </label>
    </Confirm>
  );
}

function readBack(credits: number | null): string {
  if (credits === null || credits === 0) return "";
  return credits < 0 ? `Takes back ${formatCount(-credits)} credits.` : `Gives ${formatCount(credits)} credits.`;
}
