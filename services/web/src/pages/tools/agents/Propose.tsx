/** Button that proposes what was drafted as a pull request. It is there where the server takes proposals. */
import { useState } from "react";
import { randomId, sendJson } from "../../../api/client";
import { type ApiError, toApiError } from "../../../api/problem";
import { announce } from "../../../base/announce";
import { Link } from "../../../base/router";
import { AgentText } from "../../../components/AgentText";
import { ErrorNote } from "../../../components/Notes";
import type { Proposal, ProposalOrder } from "./propose";

/** Renders the button, and then what became of the order. */
export function Propose({ order }: { order: ProposalOrder }) {
  // The same key for each try: an answer that was lost makes no second pull request.
  const [key] = useState(() => randomId(""));
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const propose = async () => {
    setBusy(true);
    setError(null);
    try {
      const init = { body: JSON.stringify(order), headers: { "idempotency-key": key } };
      setProposal(await sendJson<Proposal>("post", "/api/v1/agents/proposals", init));
      announce("It is proposed.");
    } catch (thrown) {
      setError(toApiError(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className="panel stack">
      <h3>Propose it as a pull request</h3>
      {proposal === null && (
        <div className="bar-line">
          <button type="button" className="primary" disabled={isBusy} onClick={() => void propose()}>
            {isBusy ? "Proposing …" : "Propose"}
          </button>
          <span className="hint">A commit in the repository of the configuration. It takes effect after people have merged it.</span>
        </div>
      )}
      {error !== null && <ErrorNote error={error} />}
      {proposal !== null && (
        <p>
          Proposed as <AgentText text={proposal.branch} form="inline" />. <Link to="/agents/proposals">Proposals</Link>
        </p>
      )}
    </section>
  );
}
