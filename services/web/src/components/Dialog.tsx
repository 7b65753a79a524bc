/** Dialogs: one that shows something, and one that asks before an action. The browser keeps the focus inside. */
import { type FormEvent, type ReactNode, type SyntheticEvent, useLayoutEffect, useRef, useState } from "react";
import { type ApiError, toApiError } from "../api/problem";
import { AgentText } from "./AgentText";
import { ErrorNote } from "./Notes";

/** Properties of a dialog. While `isBusy` it stays: a failure of what it does is shown in it. */
export interface DialogProps {
  title: string;
  isBusy?: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** Renders a modal dialog. Its first field has the focus, else the button that closes it, as Esc does. */
export function Dialog({ title, isBusy = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // A layout effect: the browser gives the focus back only while the dialog is still in the document.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    element?.querySelector<HTMLElement>("form :is(input, textarea, select)")?.focus();
    return () => element?.close();
  }, []);
  const cancel = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!isBusy) onClose();
  };
  // A browser closes a dialog at a second Esc, whatever the page says to the first.
  const closed = () => {
    if (isBusy) dialog.current?.showModal();
    else if (dialog.current !== null) onClose();
  };
  return (
    <dialog ref={dialog} aria-label={title} onCancel={cancel} onClose={closed}>
      <div className="dialog-head">
        <h2>{title}</h2>
        <button type="button" className="quiet" disabled={isBusy} onClick={onClose} aria-label="Close">
          ✕
        </button>
      </div>
      {children}
    </dialog>
  );
}

/** Properties of a question. The action is offered once `typed` was typed, and unless `isReady` is false. */
export interface ConfirmProps {
  title: string;
  action: string;
  tone?: "danger" | "normal";
  typed?: string | undefined;
  isReady?: boolean;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before `onConfirm`, which runs once: the buttons are off until it has ended. A failure is shown in the dialog. */
export function Confirm({ title, action, tone = "normal", typed, isReady: isFilled = true, onConfirm, onClose, children }: ConfirmProps) {
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const isReady = !isBusy && isFilled && (typed === undefined || text === typed);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) return;
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (thrown) {
      setError(toApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} isBusy={isBusy} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        {typed !== undefined && (
          <label className="typed">
            Type <code><AgentText text={typed} form="inline" /></code> to confirm
            <input value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" spellCheck={false} />
          </label>
        )}
        {error !== null && <ErrorNote error={error} />}
        <div className="dialog-foot">
          <button type="button" disabled={isBusy} onClick={onClose}>
            Back
          </button>
          <button type="submit" className={tone === "danger" ? "danger" : "primary"} disabled={!isReady}>
            {isBusy ? "Working …" : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
