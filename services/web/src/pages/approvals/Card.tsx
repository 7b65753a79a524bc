/** Shows one call that waits: what would run, for whom, and how long there is to decide. */
import { AgentText } from "../../components/agent-text/AgentText";
import { StateChip } from "../../components/StateChip";
import { type Approval, formatSeconds, keyOf, secondsLeft } from "./waiting";
import { visibleText } from "../../components/agent-text/marks";
import { Fact } from "../../components/Fact";
import { spreadJson } from "../../components/json";
import { AccountLink, RunLink } from "../../components/ObjectLink";
import "./approvals.css";

/** Decision that a person may take. */
export type Verdict = "approve" | "deny";

const URGENT_SECONDS = 60;
/** More than any arguments have: a person decides about all of them. */
const ALL_CHARS = 500_000;

/** Properties of a card: `onAsk` opens the question for a decision; null if the role does not decide. */
export interface CardProps {
  approval: Approval;
  now: number;
  onAsk: ((verdict: Verdict) => void) | null;
}

/** Renders the card. It takes the focus, so that keys can walk the cards. */
export function Card({ approval, now, onAsk }: CardProps) {
  const { tool, effect, account, runId, askedAt } = approval;
  const age = (now - Date.parse(askedAt)) / 1000;
  return (
    <article className="panel stack approval" tabIndex={0} data-approval={keyOf(approval)} aria-label={`Call of ${visibleText(tool)}`}>
      <div className="bar-line">
        <h2><AgentText text={tool} form="inline" /></h2>
        <StateChip state={effect === "writes" ? "writes" : effect} tone={effect === "writes" ? "warn" : "idle"} />
        <span className="approval-time muted">
          asked {formatSeconds(age)} ago, <Left seconds={secondsLeft(approval, now)} />
        </span>
      </div>
      <dl className="facts">
        <Fact name="Account"><AccountLink id={account} /></Fact>
        <Fact name="Run"><RunLink id={runId} /></Fact>
      </dl>
      <Arguments approval={approval} />
      {onAsk !== null && (
        <div className="bar-line">
          <button type="button" className="primary" onClick={() => onAsk("approve")}>Approve …</button>
          <button type="button" className="danger" onClick={() => onAsk("deny")}>Deny …</button>
        </div>
      )}
    </article>
  );
}

/** Shows the arguments of a call. */
export function Arguments({ approval }: { approval: Approval }) {
  if (approval.arguments === null) return <p className="muted">The arguments were removed with the texts of the run.</p>;
  return (
    <div className="approval-arguments" role="group" aria-label="Arguments" tabIndex={0}>
      <AgentText text={spreadJson(approval.arguments)} firstChars={ALL_CHARS} />
    </div>
  );
}

function Left({ seconds }: { seconds: number | null }) {
  if (seconds === null) return <span>waits without an end</span>;
  if (seconds <= 0) return <strong className="approval-over">expired</strong>;
  return <span className={seconds < URGENT_SECONDS ? "approval-urgent" : undefined}>expires in {formatSeconds(seconds)}</span>;
}
