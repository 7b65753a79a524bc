/** Draft of a skill: a text for one of an agent's behaviour files becomes a diff. It may be proposed as a skill of its own. */
import { useState } from "react";
import { type Schemas, api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { readDiff } from "../../../base/text/diff";
import { AgentText } from "../../../components/AgentText";
import { CopyButton } from "../../../components/CopyButton";
import { DiffLines } from "../../../components/DiffLines";
import { FixText } from "../../../components/FixText";
import { DraftPage } from "./DraftPage";
import { Propose } from "./Propose";
import { SKILL_NAME } from "./propose";
import { useDraft } from "./useDraft";

type FileName = Schemas["BehaviourFileName"];

const FILES: FileName[] = ["TOOLS.md", "AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "MEMORY.md"];

/** Shows the form and the last draft. */
export default function Skill() {
  const agents = useLoad("agents", (signal) => api.get("/api/v1/agents", { signal }));
  const [fields, setFields] = useState<SkillFields>({ agent: "", file: "TOOLS.md", text: "" });
  const { proposesSkills } = useDashboard();
  const { agent, file, text } = fields;
  // What is proposed is what was drafted, whatever the form has by then.
  const request = async () => {
    const options = { path: { agent: agent.trim() }, body: { file, text } };
    return { draft: await api.post("/api/v1/agents/{agent}/behaviour/draft", options), text };
  };
  const ids = agents.data?.agents.map((it) => it.agentId) ?? [];
  return (
    <DraftPage
      title="Draft of a skill"
      hint="A skill is a text among the files that an agent finds in its workspace. The draft is shown, and nothing is changed."
      drafting={useDraft(request, () => "The draft is ready.")}
      fields={<Fields fields={fields} onChange={setFields} agents={ids} />}
      show={(drafted) => (
        <>
          <Result draft={drafted.draft} />
          {proposesSkills && <ProposeSkill text={drafted.text} />}
        </>
      )}
    />
  );
}

interface SkillFields {
  agent: string;
  file: FileName;
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
        <select value={fields.file} onChange={(event) => onChange({ ...fields, file: FILES[event.target.selectedIndex] ?? fields.file })}>
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

function ProposeSkill({ text }: { text: string }) {
  const [name, setName] = useState("");
  return (
    <>
      <label className="field">
        <span>Name of a skill with this text, for a pull request</span>
        <input value={name} pattern={SKILL_NAME} autoComplete="off" spellCheck={false} onChange={(event) => setName(event.target.value)} />
      </label>
      {name !== "" && <Propose key={`${name} ${text}`} order={{ kind: "skill", name, text }} />}
    </>
  );
}

function Result({ draft: { path, diff, problem } }: { draft: Schemas["BehaviourDraft"] }) {
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
        {diff === "" ? <p>The file has this text already.</p> : <DiffLines lines={readDiff(diff)} />}
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
