/** Draft of an agent: a form becomes an entry of the configuration and a diff, which may be proposed. */
import { useState } from "react";
import { sendJson } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { Link, useLocation } from "../../../base/router";
import { type DraftedAgent, EMPTY_FIELDS, readDraft } from "./draft-fields";
import { DraftForm } from "./DraftForm";
import { DraftPage } from "./DraftPage";
import { DraftResult } from "./DraftResult";
import { Propose } from "./Propose";
import { agentProposal } from "./propose";
import { useDraft } from "./useDraft";

/** Shows the form and the last draft. */
export default function Draft() {
  const { query } = useLocation();
  const [fields, setFields] = useState({ ...EMPTY_FIELDS, agentId: query.get("agent") ?? "" });
  const { proposesAgents } = useDashboard();
  const { body, mistakes } = readDraft(fields);
  // What is proposed is what was drafted, whatever the form has by then.
  const request = async () => {
    const draft = await sendJson<DraftedAgent>("post", "/api/v1/agents/draft", { body: JSON.stringify(body) });
    return { draft, order: agentProposal(body) };
  };
  const drafting = useDraft(mistakes.length > 0 ? null : request, ({ draft: { problems } }) =>
    problems.length > 0 ? "The draft has mistakes." : "The draft is ready.");
  return (
    <DraftPage
      title="Draft of an agent"
      hint={
        <>
          The draft is shown, and nothing is changed: agents come from the configuration file. A skill has no entry of its own: it is
          a text among the files of an agent. <Link to="/agents/skill">Draft a skill</Link>
        </>
      }
      drafting={drafting}
      fields={<DraftForm fields={fields} mistakes={mistakes} onChange={setFields} />}
      buttons={<button type="button" onClick={() => setFields(EMPTY_FIELDS)}>Clear</button>}
      show={({ draft, order }) => (
        <>
          <DraftResult draft={draft} />
          {proposesAgents && draft.problems.length === 0 && <Propose key={draft.toml} order={order} />}
        </>
      )}
    />
  );
}
