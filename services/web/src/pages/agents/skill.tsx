/** Draft of a skill: a text for one of an agent's behaviour files becomes a diff. Nothing is written. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { type Schemas, api } from "../../api/client";
import { type ApiError, toApiError } from "../../api/problem";
import { useLoad } from "../../api/useLoad";
import { announce } from "../../app/announce";
import { Link } from "../../app/router";
import { useSession } from "../../app/session";
import { AgentText } from "../../components/agent-text/AgentText";
import { CopyButton } from "../../components/CopyButton";
import { ErrorNote } from "../../components/ErrorNote";
import { FixText } from "../../components/FixText";
import { RoleNote } from "../../components/RoleNote";
import { DiffText } from "./DraftResult";
import "./agents.css";

type Drafted = Schemas["BehaviourDraft"];

const FILES = ["TOOLS.md", "AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "MEMORY.md"];

/** Shows the form and the last draft. */
export default function Skill() {
  const { may } = useSession();
  const agents = useLoad("agents", (signal) => api.get("/api/v1/agents", { signal }));
  const [fields, setFields] = useState({ agent: "", file: "TOOLS.md", text: "" });
  const [draft, setDraft] = useState<Drafted | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const result = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (draft !== null) result.current?.focus();
  }, [draft]);
  if (!may("operator")) return <RoleNote role="operator" />;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const { agent, file, text } = fields;
    try {
      setDraft(await api.post("/api/v1/agents/{agent}/behaviour/draft", { path: { agent: agent.trim() }, body: { file, text } }));
      announce("The draft is ready.");
    } catch (thrown) {
      setError(toApiError(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div className="page-head">
        <h1>Draft of a skill</h1>
        <Link to="/agents">All agents</Link>
      </div>
      <p className="hint">
        A skill is a text among the files that an agent finds in its workspace. The draft is shown, and nothing is changed.
      </p>
      <form className="panel stack" onSubmit={(event) => void submit(event)}>
        <Fields fields={fields} onChange={setFields} agents={agents.data?.agents.map((agent) => agent.agentId) ?? []} />
        <div className="bar-line">
          <button type="submit" className="primary" disabled={isBusy}>{isBusy ? "Drafting …" : "Draft"}</button>
        </div>
      </form>
      {error !== null && <ErrorNote error={error} />}
      {draft !== null && (
        <section className="stack" aria-labelledby="drafted">
          <h2 id="drafted" ref={result} tabIndex={-1}>Drafted</h2>
          <Result draft={draft} />
        </section>
      )}
    </>
  );
}

interface SkillFields {
  agent: string;
  file: string;
  text: string;
}

function Fields({ fields, onChange, agents }: { fields: SkillFields; onChange: (fields: SkillFields) => void; agents: string[] }) {
  return (
    <div className="form-grid">
      <label className="field">
        <span>Agent, required</span>
        <input
          value={fields.agent} required list="skill-agents" autoComplete="off" spellCheck={false}
          onChange={(event) => onChange({ ...fields, agent: event.target.value })}
        />
      </label>
      <datalist id="skill-agents">{agents.map((agent) => <option key={agent} value={agent} />)}</datalist>
      <label className="field">
        <span>File</span>
        <select value={fields.file} onChange={(event) => onChange({ ...fields, file: event.target.value })}>
          {FILES.map((file) => <option key={file}>{file}</option>)}
        </select>
      </label>
      <label className="field field-wide">
        <span>Whole text of the file, in Markdown</span>
        <textarea
          rows={12} value={fields.text} required className="mono"
          onChange={(event) => onChange({ ...fields, text: event.target.value })}
        />
      </label>
    </div>
  );
}

function Result({ draft: { path, diff, problem } }: { draft: Drafted }) {
  if (diff === null) {
    return <div className="error-note"><FixText text={problem ?? ""} /></div>;
  }
  return (
    <>
      <section className="panel stack">
        <div className="bar-line">
          <h3>Change of <AgentText text={path ?? ""} form="inline" /></h3>
          <CopyButton text={diff} what="the diff" />
        </div>
        {diff === "" ? <p>The file has this text already.</p> : <DiffText diff={diff} />}
      </section>
      <section className="stack">
        <h3>Nothing was changed. To use the draft:</h3>
        <ol className="draft-steps">
          <li>Put the diff into a file, and run <code>patch FILE DIFF</code> with the path above as FILE. Commit it where it is in git.</li>
          <li><code>sluice agents check</code>. Each request of a run from then on has the text; runs before it do not.</li>
        </ol>
      </section>
    </>
  );
}
