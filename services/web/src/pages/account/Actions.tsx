/** Actions on an account: limits, credits, freeze and thaw. For operators. */
import { Suspense, lazy, useState } from "react";
import type { Schemas } from "../../api/client";
import { FreezeConfirm, FreezeNote } from "../accounts/FreezeConfirm";
import type { Freeze, FreezeChange } from "../accounts/freezes";
import { newCreditDraft } from "./credit";

const CreditDialog = lazy(() => import("./CreditDialog"));
const LimitsDialog = lazy(() => import("./LimitsDialog"));

/** Part of an account that an action changes. */
export type ChangedPart = "limits" | "credits" | "freezes";

/** Properties: the limits, null for an account that the data plane does not know yet, and what freezes its calls. */
export interface ActionsProps {
  id: string;
  limits: Schemas["AccountLimits"] | null;
  /** False until it is known which limits hold. */
  canLimit: boolean;
  freeze: Freeze | null;
  onChanged: (part: ChangedPart) => void;
}

/** Renders the buttons, and the dialog that is open. */
export default function Actions({ id, limits, canLimit, freeze, onChanged }: ActionsProps) {
  const [open, setOpen] = useState<"limits" | "credits" | "freeze" | null>(null);
  const [draft, setDraft] = useState(newCreditDraft);
  const [change, setChange] = useState<FreezeChange | null>(null);
  const close = () => setOpen(null);
  const isOwn = freeze?.kind === "account";
  return (
    <div className="stack">
      <div className="bar-line">
        <button type="button" onClick={() => setOpen("limits")} disabled={!canLimit}>Set limits</button>
        <button type="button" onClick={() => setOpen("credits")}>Give credits</button>
        <button type="button" className={isOwn ? undefined : "danger"} onClick={() => setOpen("freeze")}>
          {isOwn ? "Thaw" : "Freeze"}
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
      </Suspense>
      {open === "freeze" && (
        <FreezeConfirm
          action={isOwn ? "thaw" : "freeze"} target={{ kind: "account", name: id }} onClose={close}
          onDone={(made) => {
            setChange(made);
            onChanged("freezes");
          }}
        />
      )}
    </div>
  );
}
