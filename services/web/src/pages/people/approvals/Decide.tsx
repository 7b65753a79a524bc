/** Asks before a call is approved or denied. A call that no longer waits ends the question, too. */
import { useState } from "react";
import { api } from "../../../api/client";
import { toApiError } from "../../../api/problem";
import { AgentText } from "../../../components/AgentText";
import { Confirm } from "../../../components/Dialog";
import { Arguments, Asker, type Verdict } from "./Card";
import type { Approval, Outcome } from "./waiting";

/** Properties: `onDone` gets what became of the call. */
export interface DecideProps {
  approval: Approval;
  verdict: Verdict;
  onDone: (outcome: Outcome) => void;
  onClose: () => void;
}

const MAX_REASON = 1000;
const WORDS: Record<Verdict, { title: string; action: string; done: string }> = {
  approve: { title: "Let this call run", action: "Approve", done: "approved" },
  always: { title: "Let this command run, now and always", action: "Approve always", done: "approved always" },
  deny: { title: "Deny this call", action: "Deny", done: "denied" },
};

/** Renders the question. */
export function Decide({ approval, verdict, onDone, onClose }: DecideProps) {
  const [reason, setReason] = useState("");
  const { title, action, done } = WORDS[verdict];
  const isApproval = verdict !== "deny";
  const path = { run: approval.runId, call: approval.callId };
  const decide = async () => {
    try {
      if (verdict === "always") await api.post("/api/v1/runs/{run}/tools/{call}/approve", { path, body: { always: true } });
      else if (verdict === "approve") await api.post("/api/v1/runs/{run}/tools/{call}/approve", { path });
      else {
        const body = reason.trim() === "" ? {} : { reason: reason.trim() };
        await api.post("/api/v1/runs/{run}/tools/{call}/deny", { path, body });
      }
      onDone({ approval, text: done, tone: isApproval ? "good" : "bad" });
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.status !== 409 && error.status !== 404) throw error;
      onDone({ approval, text: error.message, tone: "warn" });
    }
  };
  return (
    <Confirm
      title={title} action={action} tone={isApproval ? "normal" : "danger"} onConfirm={decide} onClose={onClose}
    >
      <Asker approval={approval} />
      <p>
        <strong><AgentText text={approval.tool} form="inline" /></strong> {approval.effect === "writes" ? "writes" : "reads"}, for the
        account <AgentText text={approval.account} form="inline" />, in the run <AgentText text={approval.runId} form="inline" />.
        {verdict === "approve" && " It runs once, as shown here."}
      </p>
      {verdict === "always" && (
        <p className="note">
          It runs now, and from now on without asking: this command and no other, in the directory of each session of this agent.
          The agent’s page lists it, and there it can be forbidden.
        </p>
      )}
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
