/** Commits of a run: where they went, what the rules object to, and what they change. */
import { useState } from "react";
import { useDashboard } from "../../../api/dashboard";
import { AgentText } from "../../../components/AgentText";
import { StateChip, type Tone } from "../../../components/StateChip";
import { Table } from "../../../components/Table";
import { Time } from "../../../components/Time";
import { pullRequestLink } from "../figures";
import { Diff } from "./Diff";
import type { RunDetails } from "./useRun";

type Commits = NonNullable<RunDetails["commits"]>;
const TONES = new Map<string, Tone>([
  ["published", "good"], ["unchanged", "idle"], ["refused", "bad"], ["failed", "bad"], ["branch_moved", "warn"],
]);

/** Renders the commits and the changed files of `run`. */
export function Git({ run }: { run: RunDetails }) {
  const [showsDiff, setShowsDiff] = useState(run.commits === undefined);
  return (
    <>
      {run.commits === undefined ? (
        <p className="hint">
          The run has no repository. Order one with <code>sluice run --repo URL</code> to have its commits on a branch.
        </p>
      ) : (
        <CommitsView runId={run.runId} commits={run.commits} />
      )}
      {showsDiff ? (
        <Diff runId={run.runId} />
      ) : (
        <div>
          <button type="button" onClick={() => setShowsDiff(true)}>
            Show changed files
          </button>
        </div>
      )}
    </>
  );
}

function CommitsView({ runId, commits }: { runId: string; commits: Commits }) {
  const inline = (text: string) => <AgentText text={text} form="inline" />;
  return (
    <>
      <dl className="facts panel">
        <div><dt>Stage</dt><dd><StateChip state={commits.stage} tone={TONES.get(commits.stage) ?? "busy"} /></dd></div>
        <div><dt>Repository</dt><dd>{inline(commits.repository)}</dd></div>
        <div><dt>Branch</dt><dd>{inline(commits.branch)} <span className="muted">from</span> {inline(commits.base)}</dd></div>
        {commits.commit !== undefined && <div><dt>Last commit</dt><dd><code>{inline(commits.commit.slice(0, 12))}</code></dd></div>}
        {commits.commits !== undefined && <div><dt>Commits</dt><dd>{commits.commits}</dd></div>}
        {commits.changedFiles !== undefined && <div><dt>Changed files</dt><dd>{commits.changedFiles}</dd></div>}
        {commits.pullRequest !== undefined && (
          <div><dt>Pull request</dt><dd><PullRequest number={commits.pullRequest.number} url={commits.pullRequest.url} /></dd></div>
        )}
      </dl>
      {commits.objections !== undefined && commits.objections.length > 0 && (
        <div className="error-note">
          <strong>Rules that the commits break</strong>
          {commits.objections.map((objection, index) => (
            <div key={index}>
              <code>{inline(objection.rule)}</code> {objection.path !== undefined && inline(objection.path)} {inline(objection.detail)}
            </div>
          ))}
        </div>
      )}
      {commits.uncommitted && (
        <p className="hint">
          The agent left work that is in no commit. Its workspace is kept for a while: see the changed files, or{" "}
          <code>sluice runs diff {inline(runId)}</code>.
        </p>
      )}
      {commits.detail !== undefined && <AgentText text={commits.detail} />}
      {commits.log !== undefined && commits.log.length > 0 && (
        <Table
          label="Commits" rows={commits.log} keyOf={(commit) => commit.id}
          columns={[
            { id: "id", label: "Commit", cell: (commit) => <code>{inline(commit.id.slice(0, 12))}</code> },
            { id: "subject", label: "Subject", isWide: true, cell: (commit) => inline(commit.subject) },
            { id: "at", label: "Authored", cell: (commit) => <Time at={commit.authoredAt} /> },
          ]}
        />
      )}
    </>
  );
}

function PullRequest({ number, url }: { number: number; url: string }) {
  const { githubHost } = useDashboard();
  const link = pullRequestLink(url, githubHost);
  if (link === null) return <AgentText text={`#${number} ${url}`} form="inline" />;
  return (
    <a href={link.href} target="_blank" rel="noopener noreferrer">
      #{number} at {link.host}
    </a>
  );
}
