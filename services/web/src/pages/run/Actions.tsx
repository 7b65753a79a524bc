/** Actions on a run: cancel it, or start its next attempt. Each asks first, and runs once. */
import { useState } from "react";
import { api } from "../../api/client";
import { announce } from "../../app/announce";
import { useShortcuts } from "../../app/keys";
import { useSession } from "../../app/session";
import { AgentText } from "../../components/agent-text/AgentText";
import { Confirm } from "../../components/Dialog";
import { isActive } from "../runs/active";
import type { RunDetails } from "./useRun";

type Asked = "none" | "cancel" | "again";

/** Renders the actions that the role allows. `onChange` is called after one. */
export default function Actions({ run, onChange }: { run: RunDetails; onChange: () => void }) {
  const { may } = useSession();
  const [asked, setAsked] = useState<Asked>("none");
  const canCancel = isActive(run) && may("member");
  const canRepeat = !isActive(run) && may("member");
  useShortcuts(canCancel ? [{ key: "c", label: "Cancel this run", run: () => setAsked("cancel") }] : []);
  const close = () => setAsked("none");
  const path = { run: run.runId };
  const cancel = async () => {
    await api.post("/api/v1/runs/{run}/cancel", { path });
    announce("The run is asked to end");
    onChange();
  };
  const again = async () => {
    // The number makes a repeated request the same attempt.
    await api.post("/api/v1/runs/{run}/again", { path, body: { attempt: run.attempt + 1 } });
    announce("The next attempt has been ordered");
    onChange();
  };
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
      {asked === "cancel" && (
        <Confirm title="Cancel this run?" action="Cancel the run" tone="danger" onConfirm={cancel} onClose={close}>
          <p>
            The agent of <AgentText text={run.runId} form="inline" /> is asked to stop, and killed if it does not. What it has used
            is paid for.
          </p>
        </Confirm>
      )}
      {asked === "again" && (
        <Confirm title="Start this run again?" action={`Start attempt ${run.attempt + 2}`} onConfirm={again} onClose={close}>
          <p>The same order and files, with a budget of its own. The answer and the usage will be those of the new attempt.</p>
        </Confirm>
      )}
    </div>
  );
}
