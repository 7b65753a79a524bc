/**
 * Shows the calls of this run that wait for a person, and takes the decision. They come from the API alone: what an agent
 * writes is never such a card, and no decision travels with a message.
 */
import { type FormEvent, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { ApiError, toApiError } from "../../api/problem";
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
  const [reason, setReason] = useState("");
  const [state, setState] = useState<"waiting" | "busy" | "approved" | "denied">("waiting");
  const [error, setError] = useState<ApiError | null>(null);
  const decide = async (verdict: "approved" | "denied") => {
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
  const isOpen = state === "waiting" || state === "busy";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void decide("denied");
  };
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
      {may("member") && isOpen && (
        <form className="bar-line" onSubmit={submit}>
          <button type="button" className="primary" disabled={state === "busy"} onClick={() => void decide("approved")}>
            Approve
          </button>
          <button type="submit" className="danger" disabled={state === "busy"}>
            Deny
          </button>
          <input
            aria-label="Reason of a denial, which the agent is given" placeholder="Reason of a denial (the agent reads it)"
            value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)}
          />
        </form>
      )}
    </section>
  );
}

async function post({ runId, callId }: Approval, verdict: "approved" | "denied", reason: string): Promise<void> {
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
