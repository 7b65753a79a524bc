/** Files that say how an agent behaves. What is typed is kept while the page is open. */
import { useEffect } from "react";
import { api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { useLocation } from "../../../base/router";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { FileEditor } from "./FileEditor";
import { type GatewayAgent, fixedReason } from "./agents";
import { type FileName, FILES, storedText } from "./files";

/** Texts that were typed and not saved, by the names of their files. */
export type Drafts = Partial<Record<FileName, string>>;

/** Properties: `onSaved` gets the agent, which has a new revision. */
export interface BehaviourProps {
  agent: GatewayAgent;
  mayChange: boolean;
  drafts: Drafts;
  onDrafts: (drafts: Drafts) => void;
  onSaved: (agent: GatewayAgent) => void;
}

/** Renders the choice of the file, and its editor. */
export default function Behaviour({ agent, mayChange, drafts, onDrafts, onSaved }: BehaviourProps) {
  const { query, setQuery } = useLocation();
  const isStored = agent.source === "stored";
  const path = { gateway: agent.gateway, agent: agent.id };
  const files = useLoad(isStored ? `files ${agent.gateway} ${agent.id}` : null, (signal) =>
    api.get("/api/v1/gateways/{gateway}/agents/{agent}/files", { path, signal }),
  );
  const kept = files.data?.files ?? null;
  const isOpen = (name: FileName) => kept !== null && drafts[name] !== undefined && drafts[name] !== storedText(kept, name);
  useEffect(() => {
    if (kept !== null) onDrafts(Object.fromEntries(Object.entries(drafts).filter(([name]) => isOpen(name as FileName))));
  }, [kept]);
  const why = fixedReason(agent, mayChange);
  if (!isStored) return <EmptyState title="Its files are not kept here">{why} They are in the agent’s directory.</EmptyState>;
  if (kept === null) return <LoadNote loaded={files} />;
  const shown = FILES.find(({ name }) => name === query.get("file")) ?? FILES[0];
  const stored = storedText(kept, shown.name);
  const keep = (text: string) => onDrafts({ ...drafts, [shown.name]: text });
  const done = (changed: GatewayAgent, text: string) => {
    // What was sent is shown until it is read anew.
    keep(text);
    files.reload();
    onSaved(changed);
  };
  return (
    <>
      <LoadNote loaded={files} />
      <div className="toggles" role="group" aria-label="File">
        {FILES.map(({ name }) => (
          <button
            key={name} type="button" className="toggle" aria-pressed={name === shown.name}
            onClick={() => setQuery({ file: name === FILES[0].name ? null : name })}
          >
            {name}{isOpen(name) && " (not saved)"}
          </button>
        ))}
      </div>
      <p className="hint">{shown.hint}</p>
      {why !== null && <p className="note">{why}</p>}
      <FileEditor
        key={shown.name} path={path} name={shown.name} stored={stored} text={drafts[shown.name] ?? stored}
        canChange={why === null} onText={keep} onSaved={done}
      />
    </>
  );
}
