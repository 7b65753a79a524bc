/** Actions on a run: cancel it, or start its next attempt. Each asks first. */
import { Suspense, lazy, useState } from "react";
import { useShortcuts } from "../../../base/keys";
import { useSession } from "../../../base/session";
import { isActive } from "../figures";
import type { Action } from "./Ask";
import type { RunDetails } from "./useRun";

// Most visits act on nothing.
const Ask = lazy(() => import("./Ask"));

/** Renders the actions that the role allows. `onChange` is called after one. */
export function Actions({ run, onChange }: { run: RunDetails; onChange: () => void }) {
  const { may } = useSession();
  const [asked, setAsked] = useState<Action | null>(null);
  const canCancel = isActive(run) && may("member");
  const canRepeat = !isActive(run) && may("member");
  useShortcuts(canCancel ? [{ key: "c", label: "Cancel this run", run: () => setAsked("cancel") }] : []);
  return (
    <div className="bar-line run-actions">
      {!may("member") && <span className="muted">Actions take the role member.</span>}
      {canCancel && (
        <button type="button" className="danger" onClick={() => setAsked("cancel")}>
          Cancel …
        </button>
      )}
      {canRepeat && (
        <button type="button" onClick={() => setAsked("again")}>
          Start again …
        </button>
      )}
      <Suspense fallback={null}>
        {asked !== null && <Ask action={asked} run={run} onChange={onChange} onClose={() => setAsked(null)} />}
      </Suspense>
    </div>
  );
}
