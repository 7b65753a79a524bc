/**
 * Columns of the list of runs. That of pull requests is there where a run has one. What belongs together shares a column: a run
 * and its question, an agent and the model, an account and the person, a cost and its calls. So all fit a window of 1,280 px.
 */
import { encodePart } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { Link } from "../../../base/router";
import { formatCount, formatTime, plural } from "../../../base/text/format";
import { AgentText, cutAt } from "../../../components/AgentText";
import { StateChip } from "../../../components/StateChip";
import type { Column } from "../../../components/Table";
import { Elapsed } from "../../../components/Time";
import { Cost, pullRequestLink } from "../figures";
import type { Run } from "./filter";

const none = <span className="none">–</span>;

const LISTED_QUESTION = 90;

function beginning(question: string): string {
  return question.length > LISTED_QUESTION ? `${cutAt(question, LISTED_QUESTION)}…` : question;
}

/** Id of a run, with the beginning of its question. */
function Named({ run: { runId, question } }: { run: Run }) {
  return (
    <div className="two-lines run-named">
      <Link to={`/sandbox/${encodePart(runId)}`} className="run-id">
        <AgentText text={runId} form="inline" />
      </Link>
      {question !== undefined && <small><AgentText text={beginning(question)} form="inline" /></small>}
    </div>
  );
}

/** State, with the place in the queue of a run that waits. */
function StateCell({ run: { state, error, queueAhead } }: { run: Run }) {
  return (
    <div className="two-lines">
      <StateChip state={state} code={error?.code} />
      {queueAhead !== undefined && <small>{formatCount(queueAhead)} ahead of it</small>}
    </div>
  );
}

/** Date and time of day, also of today: a list is read later, too. */
function Ordered({ at }: { at: string }) {
  const [first, second] = formatTime(at, new Date(0)).split(" ");
  return <time className="two-lines" dateTime={at} title={at}>{second ?? first} <small>{second === undefined ? "" : first}</small></time>;
}

/** Cost, with what it was paid for. */
function Use({ run: { receipts, usage } }: { run: Run }) {
  return (
    <div className="two-lines">
      {receipts === undefined ? none : <Cost receipts={receipts} />}
      {usage !== undefined && (
        <small>
          {plural(usage.calls, "call")}
          {usage.refusedCalls > 0 && <span className="refused-count">, {formatCount(usage.refusedCalls)} refused</span>}
          <br />{plural(usage.inputTokens + usage.outputTokens, "token")}
        </small>
      )}
    </div>
  );
}

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
  const hasPullRequests = runs.some((run) => run.pullRequest !== undefined);
  return [
    { id: "run", label: "Run", isWide: true, cell: (run) => <Named run={run} /> },
    { id: "state", label: "State", isWide: true, cell: (run) => <StateCell run={run} /> },
    { id: "agent", label: "Agent, model", cell: (run) => <TwoLines first={run.agentId} second={run.model} /> },
    seesAccounts
      ? { id: "account", label: "Account, person", cell: (run) => <TwoLines first={run.account} second={run.user} /> }
      : { id: "user", label: "Ordered by", cell: (run) => (run.user === null ? none : <AgentText text={run.user} form="inline" />) },
    { id: "ordered", label: "Ordered", cell: (run) => <Ordered at={run.createdAt} /> },
    {
      id: "took", label: "Took", isNumeric: true,
      cell: (run) => <Elapsed from={run.startedAt} to={run.endedAt} />,
    },
    { id: "cost", label: "Cost, use", isNumeric: true, cell: (run) => <Use run={run} /> },
    ...(hasPullRequests ? [{
      id: "pr", label: "Pull request",
      cell: ({ pullRequest }: Run) => (pullRequest === undefined ? none : <PullRequest {...pullRequest} />),
    }] : []),
  ];
}
