/** Asks before a call is approved or denied. A call that no longer waits ends the question, too. */
import { useState } from "react";
import { api } from "../../../api/client";
import { toApiError } from "../../../api/problem";
import { AgentText } from "../../../components/AgentText";
import { Confirm } from "../../../components/Dialog";
import { Arguments, type Verdict } from "./Card";
import type { Approval, Outcome } from "./waiting";

/** Properties: `onDone` gets what became of the call. */
export interface DecideProps {
  approval: Approval;
  verdict: Verdict;
  onDone: (outcome: Outcome) => void;
  onClose: () => void;
}

const MAX_REASON = 1000;

/** Renders the question. */
export function Decide({ approval, verdict, onDone, onClose }: DecideProps) {
  const [reason, setReason] = useState("");
  const isApproval = verdict === "approve";
  const path = { run: approval.runId, call: approval.callId };
  const decide = async () => {
    try {
      if (isApproval) await api.post("/api/v1/runs/{run}/tools/{call}/approve", { path });
      else {
        const body = reason.trim() === "" ? {} : { reason: reason.trim() };
        await api.post("/api/v1/runs/{run}/tools/{call}/deny", { path, body });
      }
      onDone({ approval, text: isApproval ? "approved" : "denied", tone: isApproval ? "good" : "bad" });
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.status !== 409 && error.status !== 404) throw error;
      onDone({ approval, text: error.message, tone: "warn" });
    }
  };
  return (
    <Confirm
      title={isApproval ? "Let this call run" : "Deny this call"} action={isApproval ? "Approve" : "Deny"}
      tone={isApproval ? "normal" : "danger"} onConfirm={decide} onClose={onClose}
    >
      <p>
        <strong><AgentText text={approval.tool} form="inline" /></strong> {approval.effect === "writes" ? "writes" : "reads"}, for the
        account <AgentText text={approval.account} form="inline" />, in the run <AgentText text={approval.runId} form="inline" />.
        {isApproval && " It runs once, as shown here."}
      </p>
      <Arguments approval={approval} />
      {!isApproval && (
        <label className="field">
          <span>Reason, which the agent is given</span>
          <textarea rows={3} value={reason} maxLength={MAX_REASON} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
    </Confirm>
  );
}
