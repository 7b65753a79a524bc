/**
 * Shows the calls of this run that wait for a person, and takes the decision. They come from the API alone: what an agent
 * writes is never such a card, and no decision travels with a message.
 */
import { type FormEvent, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { type ApiError, toApiError } from "../../api/problem";
import { useSession } from "../../app/session";
import { AgentText } from "../../components/agent-text/AgentText";
import { ErrorNote } from "../../components/ErrorNote";
import { StateChip } from "../../components/StateChip";
import { Time } from "../../components/Time";

type Approval = Schemas["Approval"];

/** Renders the calls. `onDecided` is called after each decision, also after one that came too late. */
export function Approvals({ approvals, onDecided }: { approvals: Approval[]; onDecided: () => void }) {
  return approvals.map((approval) => <ApprovalCard key={approval.callId} approval={approval} onDecided={onDecided} />);
}

function ApprovalCard({ approval, onDecided }: { approval: Approval; onDecided: () => void }) {
  const { may } = useSession();
  const { state, error, decide } = useDecision(approval, onDecided);
  const isOpen = state === "waiting" || state === "busy";
  return (
    <section className="approval panel" aria-label={`Approval of ${approval.tool}`}>
      <div className="tool-head">
        <StateChip state={isOpen ? "waits for your decision" : state} tone={isOpen ? "warn" : state === "approved" ? "good" : "bad"} />
        <code>
          <AgentText text={approval.tool} form="inline" />
        </code>
        <span className="muted">{approval.effect === "writes" ? "writes: it changes something" : "reads only"}</span>
        <span className="tool-facts">denied at <Time at={approval.decideBy} /></span>
      </div>
      <div className="tool-text" tabIndex={0} role="group" aria-label="Arguments">
        {approval.arguments === null ? <span className="muted">The arguments are not kept any more.</span> : (
          <AgentText text={pretty(approval.arguments)} />
        )}
      </div>
      {error !== null && <ErrorNote error={error} />}
      {!may("member") && <p className="hint">A decision takes the role member.</p>}
      {may("member") && isOpen && <DecisionForm phase={state} onDecide={decide} />}
    </section>
  );
}

type Verdict = "approved" | "denied";

function useDecision(approval: Approval, onDecided: () => void) {
  const [state, setState] = useState<"waiting" | "busy" | Verdict>("waiting");
  const [error, setError] = useState<ApiError | null>(null);
  const decide = async (verdict: Verdict, reason: string) => {
    if (state !== "waiting") return;
    setState("busy");
    setError(null);
    try {
      await post(approval, verdict, reason);
      setState(verdict);
    } catch (thrown) {
      setError(toApiError(thrown));
      setState("waiting");
    }
    onDecided();
  };
  return { state, error, decide };
}

function DecisionForm({ phase, onDecide }: { phase: string; onDecide: (verdict: Verdict, reason: string) => Promise<void> }) {
  const [reason, setReason] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onDecide("denied", reason);
  };
  return (
    <form className="bar-line" onSubmit={submit}>
      <button type="button" className="primary" disabled={phase === "busy"} onClick={() => void onDecide("approved", reason)}>
        Approve
      </button>
      <button type="submit" className="danger" disabled={phase === "busy"}>
        Deny
      </button>
      <input
        aria-label="Reason of a denial, which the agent is given" placeholder="Reason of a denial (the agent reads it)"
        value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)}
      />
    </form>
  );
}

async function post({ runId, callId }: Approval, verdict: Verdict, reason: string): Promise<void> {
  const path = { run: runId, call: callId };
  if (verdict === "approved") await api.post("/api/v1/runs/{run}/tools/{call}/approve", { path });
  else await api.post("/api/v1/runs/{run}/tools/{call}/deny", { path, body: reason === "" ? {} : { reason } });
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2) ?? json;
  } catch {
    return json;
  }
}
