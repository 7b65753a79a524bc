/** Asks before an action on a run. Each action runs once. */
import { api } from "../../../api/client";
import { announce } from "../../../base/announce";
import { AgentText } from "../../../components/AgentText";
import { Confirm } from "../../../components/Dialog";
import type { RunDetails } from "./useRun";

/** Action on a run. */
export type Action = "cancel" | "again";

/** Properties: `onChange` is called after the action. */
export interface AskProps {
  action: Action;
  run: RunDetails;
  onChange: () => void;
  onClose: () => void;
}

/** Renders the question. */
export default function Ask({ action, run, onChange, onClose }: AskProps) {
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
  if (action === "cancel") {
    return (
      <Confirm title="Cancel this run?" action="Cancel the run" tone="danger" onConfirm={cancel} onClose={onClose}>
        <p>
          The agent of <AgentText text={run.runId} form="inline" /> is asked to stop, and killed if it does not. What it has used
          is paid for.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm title="Start this run again?" action={`Start attempt ${run.attempt + 2}`} onConfirm={again} onClose={onClose}>
      <p>The same order and files, with a budget of its own. The answer and the usage will be those of the new attempt.</p>
    </Confirm>
  );
}
