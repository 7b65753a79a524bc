/**
 * Shows one call that waits: what would run, for whom, and how long there is to decide. Long arguments are folded, and a call
 * can be approved only once all of them are shown.
 */
import { useState } from "react";
import { formatCount } from "../../../base/text/format";
import { spreadJson } from "../../../base/text/json";
import { visibleText } from "../../../base/text/marks";
import { AgentText, cutAt } from "../../../components/AgentText";
import { Fact } from "../../../components/Fact";
import { AccountLink, GatewayAgentLink, RunLink } from "../../../components/ObjectLink";
import { StateChip } from "../../../components/StateChip";
import { type Approval, agentOf, formatSeconds, keyOf, secondsLeft } from "./waiting";
import "./approvals.css";

/** Decision that a person may take. */
export type Verdict = "approve" | "always" | "deny";

const URGENT_SECONDS = 60;
/** Most characters and lines of arguments that are not folded. */
const FOLD_CHARS = 2_000;
const FOLD_LINES = 24;

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
        <h2><AgentText text={tool} form="inline" isExact /></h2>
        <StateChip state={effect === "writes" ? "writes" : effect} tone={effect === "writes" ? "warn" : "idle"} />
        <span className="approval-time muted">
          asked {formatSeconds(age)} ago, <Left seconds={secondsLeft(approval, now)} />
        </span>
      </div>
      <Asker approval={approval} />
      <dl className="facts">
        <Fact name="Account"><AccountLink id={account} /></Fact>
        <Fact name="Run"><RunLink id={runId} /></Fact>
      </dl>
      <Decision approval={approval} onAsk={onAsk} />
    </article>
  );
}

/** Shows the arguments, and offers the decisions that a person may take by what is shown. */
export function Decision({ approval, onAsk }: Pick<CardProps, "approval" | "onAsk">) {
  const [isOpen, setOpen] = useState(false);
  const isWhole = isOpen || isShort(approval.arguments);
  const canApprove = isWhole && approval.arguments !== null;
  return (
    <>
      <Arguments approval={approval} onOpen={isWhole ? null : () => setOpen(true)} />
      {onAsk !== null && (
        <div className="bar-line">
          {canApprove && (
            <button type="button" className="primary" data-verdict="approve" onClick={() => onAsk("approve")}>Approve …</button>
          )}
          {canApprove && agentOf(approval) !== null && (
            <button type="button" data-verdict="always" onClick={() => onAsk("always")}>Approve always …</button>
          )}
          <button type="button" className="danger" data-verdict="deny" onClick={() => onAsk("deny")}>Deny …</button>
          {!canApprove && <span className="hint">A call can be approved once all of its arguments are shown.</span>}
        </div>
      )}
    </>
  );
}

/** Says which agent of a gateway asks to run a command. Calls of host tools are the run's own. */
export function Asker({ approval }: { approval: Approval }) {
  const asker = agentOf(approval);
  if (asker === null) return null;
  return (
    <p>
      <GatewayAgentLink gateway={asker.gateway} id={asker.agent} /> of <AgentText text={asker.gateway} form="inline" /> asks to run a
      command.
    </p>
  );
}

/** Shows the arguments of a call: all of them, or their beginning if `onOpen` shows the rest. */
export function Arguments({ approval, onOpen = null }: { approval: Approval; onOpen?: (() => void) | null }) {
  if (approval.arguments === null) return <p className="muted">The arguments were removed with the texts of the run.</p>;
  const text = spreadJson(approval.arguments);
  const shown = onOpen === null ? text : fold(text);
  return (
    <div className="approval-arguments" role="group" aria-label="Arguments" tabIndex={0}>
      {/* Never cut by the text itself: what is approved is shown. */}
      <AgentText key={shown.length} text={shown} isExact firstChars={Number.POSITIVE_INFINITY} />
      {onOpen !== null && (
        <button type="button" className="more" onClick={onOpen}>
          Show all arguments: {formatCount(text.length - shown.length)} characters follow
        </button>
      )}
    </div>
  );
}

function isShort(args: string | null): boolean {
  if (args === null) return true;
  const text = spreadJson(args);
  return fold(text) === text;
}

/** Returns the beginning of a text, which is all of a short one. */
function fold(text: string): string {
  return cutAt(text.split("\n", FOLD_LINES).join("\n"), FOLD_CHARS);
}

function Left({ seconds }: { seconds: number | null }) {
  if (seconds === null) return <span>waits without an end</span>;
  if (seconds <= 0) return <strong className="approval-over">expired</strong>;
  return <span className={seconds < URGENT_SECONDS ? "approval-urgent" : undefined}>expires in {formatSeconds(seconds)}</span>;
}
