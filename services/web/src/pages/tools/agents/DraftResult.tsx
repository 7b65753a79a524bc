/** Shows a draft: the entry, its difference from the file, and what to do with it. */
import { readDiff } from "../../../base/text/diff";
import { AgentText } from "../../../components/AgentText";
import { CopyButton } from "../../../components/CopyButton";
import { DiffLines } from "../../../components/DiffLines";
import { FixText } from "../../../components/FixText";
import type { DraftedAgent } from "./draft-fields";

/** Renders the draft, or what is wrong with it. */
export function DraftResult({ draft }: { draft: DraftedAgent }) {
  return (
    <>
      {draft.problems.length > 0 && (
        <div className="error-note">
          <strong>{draft.problems.length === 1 ? "One value is wrong" : `${draft.problems.length} values are wrong`}</strong>
          <ul className="draft-problems">
            {draft.problems.map((problem, index) => <li key={index}><FixText text={problem} /></li>)}
          </ul>
        </div>
      )}
      <section className="panel stack">
        <div className="bar-line">
          <h3>Entry</h3>
          <CopyButton text={draft.toml} what="the entry" />
        </div>
        <div className="draft-text"><AgentText text={draft.toml} /></div>
      </section>
      {draft.diff !== null && (
        <section className="panel stack">
          <div className="bar-line">
            <h3>{draft.replaces ? "Change of the entry that exists" : "Change"}</h3>
            <CopyButton text={draft.diff} what="the diff" />
          </div>
          <DiffLines lines={readDiff(draft.diff)} />
        </section>
      )}
      {draft.problems.length === 0 && <Next file={draft.file} />}
    </>
  );
}

function Next({ file }: { file: string | null }) {
  return (
    <section className="stack">
      <h3>Nothing was changed. To use the draft:</h3>
      <ol className="draft-steps">
        <li>
          Put the entry into {file === null ? "the configuration file" : <AgentText text={file} form="inline" />}, by a commit where
          it is in git.
        </li>
        <li><code>sluice config check</code> and <code>sluice agents check</code></li>
        <li><code>sluice reload</code>, and SIGHUP for <code>sluice up</code></li>
      </ol>
    </section>
  );
}
