/**
 * Columns of the list of runs. Those of the queue and of pull requests are there where a run has a value. An agent shares its
 * column with the model, an account with the person, so that all columns fit a window of 1,280 px.
 */
import { useDashboard } from "../../api/dashboard";
import { encodePart } from "../../api/encode";
import { Link } from "../../app/router";
import { AgentText } from "../../components/agent-text/AgentText";
import { Elapsed } from "../../components/Elapsed";
import { formatCount } from "../../components/format";
import { StateChip } from "../../components/StateChip";
import type { Column } from "../../components/Table";
import { Time } from "../../components/Time";
import { pullRequestLink } from "../run/links";
import { CallCount, Cost } from "./figures";
import type { Run } from "./filter";

const none = <span className="none">–</span>;

const tokens = ({ usage }: Run) => (usage === undefined ? none : formatCount(usage.inputTokens + usage.outputTokens));

/** Text of a cell; the second line belongs to the first. */
function TwoLines({ first, second }: { first: string; second: string | null | undefined }) {
  return (
    <div className="two-lines">
      <AgentText text={first} form="inline" />
      {second !== null && second !== undefined && <small><AgentText text={second} form="inline" /></small>}
    </div>
  );
}

function PullRequest({ number, url }: NonNullable<Run["pullRequest"]>) {
  const link = pullRequestLink(url, useDashboard().githubHost);
  if (link === null) return <>#{number}</>;
  return <a href={link.href} target="_blank" rel="noopener noreferrer" aria-label={`#${number} at ${link.host}`}>#{number}</a>;
}

/** Returns the columns for `runs`; the account is shown to those who see several. */
export function runColumns(runs: Run[], seesAccounts: boolean): Column<Run>[] {
  const waits = runs.some((run) => run.queueAhead !== undefined);
  const hasPullRequests = runs.some((run) => run.pullRequest !== undefined);
  return [
    {
      id: "run", label: "Run", isWide: true,
      cell: (run) => (
        <Link to={`/sandbox/${encodePart(run.runId)}`} className="run-id">
          <AgentText text={run.runId} form="inline" />
        </Link>
      ),
    },
    { id: "state", label: "State", isWide: true, cell: (run) => <StateChip state={run.state} code={run.error?.code} /> },
    ...(waits ? [{
      id: "ahead", label: "Ahead of it", isNumeric: true,
      cell: ({ queueAhead }: Run) => (queueAhead === undefined ? none : formatCount(queueAhead)),
    }] : []),
    { id: "agent", label: "Agent, model", cell: (run) => <TwoLines first={run.agentId} second={run.model} /> },
    seesAccounts
      ? { id: "account", label: "Account, person", cell: (run) => <TwoLines first={run.account} second={run.user} /> }
      : { id: "user", label: "Ordered by", cell: (run) => (run.user === null ? none : <AgentText text={run.user} form="inline" />) },
    { id: "ordered", label: "Ordered", cell: (run) => <Time at={run.createdAt} /> },
    {
      id: "took", label: "Took", isNumeric: true,
      cell: (run) => <Elapsed from={run.startedAt} to={run.endedAt} />,
    },
    {
      id: "calls", label: "Calls", isNumeric: true,
      cell: (run) => (run.usage === undefined ? none : <CallCount calls={run.usage.calls} refused={run.usage.refusedCalls} />),
    },
    { id: "tokens", label: "Tokens", isNumeric: true, cell: tokens },
    {
      id: "cost", label: "Cost", isNumeric: true,
      cell: (run) => (run.receipts === undefined ? none : <Cost receipts={run.receipts} />),
    },
    ...(hasPullRequests ? [{
      id: "pr", label: "Pull request",
      cell: ({ pullRequest }: Run) => (pullRequest === undefined ? none : <PullRequest {...pullRequest} />),
    }] : []),
  ];
}
