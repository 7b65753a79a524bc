/** Proposals of agents and skills, the newest first: how far each is, its pull request and its difference. */
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { usePages } from "../../../api/usePages";
import { Link } from "../../../base/router";
import { useSession } from "../../../base/session";
import { readDiff } from "../../../base/text/diff";
import { AgentText } from "../../../components/AgentText";
import { DiffLines } from "../../../components/DiffLines";
import { More } from "../../../components/More";
import { EmptyState } from "../../../components/Notes";
import { StateChip } from "../../../components/StateChip";
import { Time } from "../../../components/Time";
import { pullRequestLink } from "../../runs/figures";
import { type Proposal, kindWords, toneOf } from "./propose";
import "./agents.css";

const PAGE = 50;

/** Shows the list. */
export default function Proposals() {
  const { may } = useSession();
  const { proposesAgents } = useDashboard();
  const pages = usePages("proposals", async (cursor, signal) => {
    const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const { proposals, nextCursor } = await api.get("/api/v1/agents/proposals", { query, signal });
    return { items: proposals, nextCursor };
  });
  return (
    <>
      <div className="page-head">
        <h1>Proposals</h1>
        <Link to="/agents">All agents</Link>
        {may("operator") && proposesAgents && <Link to="/agents/draft">Draft a new agent</Link>}
        <div className="bar-line"><button type="button" onClick={pages.reload}>Look again</button></div>
      </div>
      {pages.items?.length === 0 && (
        <EmptyState title="There are no proposals">
          A draft of an agent or a skill can be proposed as a pull request where the configuration has <code>[agents_repository]</code>.
        </EmptyState>
      )}
      {pages.items?.map((proposal) => <Shown key={proposal.id} proposal={proposal} />)}
      <More pages={pages} />
    </>
  );
}

/** Renders one proposal. */
export function Shown({ proposal }: { proposal: Proposal }) {
  const { kind, name, path, state, branch, diff, reason, createdBy, createdAt } = proposal;
  return (
    <article className="panel stack" aria-label={`${kindWords(kind)} ${name}`}>
      <div className="bar-line">
        <strong>{kindWords(kind)} <AgentText text={name} form="inline" /></strong>
        <StateChip state={state} tone={toneOf(state)} />
        <PullRequest proposal={proposal} />
      </div>
      <p className="muted">
        <AgentText text={path} form="inline" /> on <AgentText text={branch} form="inline" />, by{" "}
        <AgentText text={createdBy} form="inline" />, <Time at={createdAt} />
      </p>
      {reason !== null && <AgentText text={reason} />}
      {diff !== null && (
        <details>
          <summary>Difference</summary>
          <DiffLines lines={readDiff(diff)} />
        </details>
      )}
    </article>
  );
}

function PullRequest({ proposal: { pullRequest } }: { proposal: Proposal }) {
  const { githubHost } = useDashboard();
  if (pullRequest === null) return null;
  const { number, url } = pullRequest;
  const link = pullRequestLink(url, githubHost);
  if (link === null) return <>#{number}</>;
  return <a href={link.href} target="_blank" rel="noopener noreferrer" aria-label={`#${number} at ${link.host}`}>#{number}</a>;
}
