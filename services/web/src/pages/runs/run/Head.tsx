/** Head of a run: state, figures, what it waits for, and why it failed. */
import { type ReactNode, Suspense, lazy } from "react";
import { encodePart } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { Link } from "../../../base/router";
import { formatCount } from "../../../base/text/format";
import { AgentText, cutAt } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { StateChip } from "../../../components/StateChip";
import { Elapsed, Time } from "../../../components/Time";
import { CallCount, Cost, traceLink } from "../figures";
import { Actions } from "./Actions";
import type { RunDetails } from "./useRun";

const Failure = lazy(() => import("./Failure"));

/** Renders the head. `children` says how the stream stands. */
export function Head({ run, onChange, children }: { run: RunDetails; onChange: () => void; children: ReactNode }) {
  const waiting = run.waitingToolCalls?.length ?? 0;
  return (
    <>
      <div className="page-head">
        <RunTitle id={run.runId} />
        <StateChip state={run.state} />
        {children}
        <Actions run={run} onChange={onChange} />
      </div>
      {run.queue !== undefined && (
        <p className="note">
          In the queue: {formatCount(run.queue.ahead)} ahead of it, {formatCount(run.queue.waiting)} wait in all.
        </p>
      )}
      {waiting > 0 && (
        <p className="note">
          {waiting === 1 ? "A tool call waits" : `${waiting} tool calls wait`} for a person. <Link to="/approvals">Decide now</Link>
        </p>
      )}
      {run.error !== undefined && (
        <Suspense fallback={null}>
          <Failure error={run.error} account={run.account} />
        </Suspense>
      )}
      {run.question !== undefined && <Question text={run.question} />}
      <Facts run={run} />
    </>
  );
}

const SHORT_QUESTION = 400;

/** Question of a run; a long one unfolds. */
function Question({ text }: { text: string }) {
  return (
    <section className="panel question" aria-label="Question">
      <h2>Question</h2>
      {text.length <= SHORT_QUESTION ? (
        <AgentText text={text} />
      ) : (
        <details>
          <summary><AgentText text={cutAt(text, SHORT_QUESTION)} form="inline" /></summary>
          <AgentText text={text} />
        </details>
      )}
    </section>
  );
}

/** Title of a run, also where it cannot be shown. */
export function RunTitle({ id }: { id: string }) {
  return (
    <h1 className="run-title">
      <Link to="/sandbox">Runs</Link> <span className="muted">/</span> <AgentText text={id} form="inline" />
    </h1>
  );
}

function Facts({ run }: { run: RunDetails }) {
  const { traceUrl } = useDashboard();
  const trace = traceLink(traceUrl, run.traceId ?? null);
  return (
    <dl className="facts panel">
      <Fact name="Agent">{run.agentId}</Fact>
      {run.model !== undefined && <Fact name="Model">{run.model}</Fact>}
      <Fact name="Account">{run.account}</Fact>
      {run.user !== null && <Fact name="Ordered by">{run.user}</Fact>}
      <Fact name="Ordered"><Time at={run.createdAt} /></Fact>
      <Fact name="Took"><Elapsed from={run.startedAt} to={run.endedAt} /></Fact>
      {run.attempt > 0 && <Fact name="Attempt">{run.attempt + 1}</Fact>}
      {run.priority !== "normal" && <Fact name="Priority">{run.priority}</Fact>}
      {run.usage !== undefined && (
        <>
          <Fact name="Model calls"><CallCount calls={run.usage.calls} refused={run.usage.refusedCalls} /></Fact>
          <Fact name="Tokens in / out">
            {formatCount(run.usage.inputTokens)} / {formatCount(run.usage.outputTokens)}
          </Fact>
        </>
      )}
      {run.receipts !== undefined && <Fact name="Cost"><Cost receipts={run.receipts} /></Fact>}
      {run.stateKey !== undefined && (
        <Fact name="Thread">
          <Link to={`/chat/${encodePart(run.stateKey)}`}><AgentText text={run.stateKey} form="inline" /></Link>
        </Fact>
      )}
      {trace !== null && (
        <Fact name="Trace">
          <a href={trace.href} target="_blank" rel="noopener noreferrer">open at {trace.host}</a>
        </Fact>
      )}
    </dl>
  );
}
