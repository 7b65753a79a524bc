/** Actions on an account: limits, credits, freeze and thaw. For operators; others see what they lack. */
import { Suspense, lazy, useState } from "react";
import type { Schemas } from "../../api/client";
import { useSession } from "../../app/session";
import { FreezeConfirm, FreezeNote } from "../accounts/FreezeConfirm";
import type { Freeze, FreezeChange } from "../accounts/freezes";
import { newCreditDraft } from "./credit";

const CreditDialog = lazy(() => import("./CreditDialog"));
const LimitsDialog = lazy(() => import("./LimitsDialog"));

/** Properties: the account if the data plane knows it, and what is frozen of it. */
export interface ActionsProps {
  id: string;
  account: Schemas["Account"] | null;
  freeze: Freeze | null;
  onChanged: (part: "limits" | "credits" | "freezes") => void;
}

/** Renders the buttons, and the dialog that is open. */
export function Actions({ id, account, freeze, onChanged }: ActionsProps) {
  const { may } = useSession();
  const [open, setOpen] = useState<"limits" | "credits" | "freeze" | null>(null);
  const [draft, setDraft] = useState(newCreditDraft);
  const [change, setChange] = useState<FreezeChange | null>(null);
  if (!may("operator")) return <p className="hint">Limits, credits and freezes take the role operator.</p>;
  const close = () => setOpen(null);
  const isOwn = freeze?.kind === "account";
  return (
    <div className="stack">
      <div className="bar-line">
        <button type="button" onClick={() => setOpen("limits")} disabled={account === null}>Set limits</button>
        <button type="button" onClick={() => setOpen("credits")}>Give credits</button>
        <button type="button" className={isOwn ? undefined : "danger"} onClick={() => setOpen("freeze")}>
          {isOwn ? "Thaw" : "Freeze"}
        </button>
      </div>
      <FreezeNote change={change} />
      <Suspense fallback={null}>
        {open === "limits" && account !== null && (
          <LimitsDialog account={account} onDone={() => onChanged("limits")} onClose={close} />
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
