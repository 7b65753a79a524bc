/** Draft of an agent: a form becomes an entry of the configuration and a diff. Nothing is written. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { sendJson } from "../../api/client";
import { type ApiError, toApiError } from "../../api/problem";
import { announce } from "../../app/announce";
import { Link, useLocation } from "../../app/router";
import { useSession } from "../../app/session";
import { ErrorNote } from "../../components/ErrorNote";
import { RoleNote } from "../../components/RoleNote";
import type { DraftedAgent } from "../system/types";
import { DraftForm } from "./DraftForm";
import { DraftResult } from "./DraftResult";
import { EMPTY_FIELDS, readDraft } from "./draft-fields";
import "./agents.css";

/** Shows the form and the last draft. */
export default function Draft() {
  const { may } = useSession();
  const { query } = useLocation();
  const [fields, setFields] = useState({ ...EMPTY_FIELDS, agentId: query.get("agent") ?? "" });
  const [draft, setDraft] = useState<DraftedAgent | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const result = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (draft !== null) result.current?.focus();
  }, [draft]);
  if (!may("operator")) return <RoleNote role="operator" />;
  const { body, mistakes } = readDraft(fields);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (mistakes.length > 0) return;
    setBusy(true);
    setError(null);
    try {
      const drafted = await sendJson<DraftedAgent>("post", "/api/v1/agents/draft", { body: JSON.stringify(body) });
      announce(drafted.problems.length > 0 ? "The draft has mistakes." : "The draft is ready.");
      setDraft(drafted);
    } catch (thrown) {
      setError(toApiError(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className="page-head">
        <h1>Draft of an agent</h1>
        <Link to="/agents">All agents</Link>
      </div>
      <p className="hint">
        The draft is shown, and nothing is changed: agents come from the configuration file. A skill has no entry of its own: it is a
        text among the files of an agent. <Link to="/agents/skill">Draft a skill</Link>
      </p>
      <form className="panel stack" onSubmit={(event) => void submit(event)}>
        <DraftForm fields={fields} mistakes={mistakes} onChange={setFields} />
        <div className="bar-line">
          <button type="submit" className="primary" disabled={isBusy}>{isBusy ? "Drafting …" : "Draft"}</button>
          <button type="button" onClick={() => setFields(EMPTY_FIELDS)}>Clear</button>
        </div>
      </form>
      {error !== null && <ErrorNote error={error} />}
      {draft !== null && (
        <section className="stack" aria-labelledby="drafted">
          <h2 id="drafted" ref={result} tabIndex={-1}>Drafted</h2>
          <DraftResult draft={draft} />
        </section>
      )}
    </>
  );
}
