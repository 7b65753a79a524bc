/** Actions on an account: limits, credits, freeze and thaw. For operators. */
import { Suspense, lazy, useState } from "react";
import type { Schemas } from "../../../api/client";
import { type FreezeChange, FreezeNote } from "../FreezeNote";
import type { CreditDraft } from "./CreditDialog";

const CreditDialog = lazy(() => import("./CreditDialog"));
const FreezeConfirm = lazy(() => import("../FreezeConfirm"));
const LimitsDialog = lazy(() => import("./LimitsDialog"));

/** Part of an account that an action changes. */
export type ChangedPart = "limits" | "credits" | "freezes";

/** Properties: the limits, null for an account that the data plane does not know yet, and how it is frozen. */
export interface ActionsProps {
  id: string;
  limits: Schemas["AccountLimits"] | null;
  /** False until it is known which limits hold. */
  canLimit: boolean;
  /** Whether the account has a freeze of its own, beside one of all calls. */
  isFrozen: boolean;
  onChanged: (part: ChangedPart) => void;
}

/** Renders the buttons, and the dialog that is open. */
export default function Actions({ id, limits, canLimit, isFrozen, onChanged }: ActionsProps) {
  const [open, setOpen] = useState<"limits" | "credits" | "freeze" | null>(null);
  const [draft, setDraft] = useState(newCreditDraft);
  const [change, setChange] = useState<FreezeChange | null>(null);
  const close = () => setOpen(null);
  return (
    <div className="stack">
      <div className="bar-line">
        <button type="button" onClick={() => setOpen("limits")} disabled={!canLimit}>Set limits</button>
        <button type="button" onClick={() => setOpen("credits")}>Give credits</button>
        <button type="button" className={isFrozen ? undefined : "danger"} onClick={() => setOpen("freeze")}>
          {isFrozen ? "Thaw" : "Freeze"}
        </button>
      </div>
      <FreezeNote change={change} />
      <Suspense fallback={null}>
        {open === "limits" && (
          <LimitsDialog account={id} limits={limits} onDone={() => onChanged("limits")} onClose={close} />
        )}
        {open === "credits" && (
          <CreditDialog
            account={id} draft={draft} onChange={setDraft} onClose={close}
            onDone={(text) => {
              setDraft(newCreditDraft());
              setChange({ text, isWarning: false });
              onChanged("credits");
            }}
          />
        )}
        {open === "freeze" && (
          <FreezeConfirm
            action={isFrozen ? "thaw" : "freeze"} target={{ kind: "account", name: id }} onClose={close}
            onDone={(made) => {
              setChange(made);
              onChanged("freezes");
            }}
          />
        )}
      </Suspense>
    </div>
  );
}

/** Returns an empty draft, with a key of its own. */
function newCreditDraft(): CreditDraft {
  const random = crypto.getRandomValues(new Uint8Array(12));
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { credits: "", note: "", key: `dashboard-${hex}` };
}
