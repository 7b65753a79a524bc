/** Calls of host tools, and commands of gateways’ agents, that wait for a person, the oldest first. */
import { useEffect, useRef, useState } from "react";
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { announce } from "../../../base/announce";
import { useShortcuts } from "../../../base/keys";
import { useSession } from "../../../base/session";
import { formatCount } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { RunLink } from "../../../components/ObjectLink";
import { StateChip } from "../../../components/StateChip";
import { Card, type Verdict } from "./Card";
import { Decide } from "./Decide";
import { type Approval, type Outcome, compare, keyOf, stillWaiting, useNow } from "./waiting";

const MAX_LISTED = 200;
const MAX_OUTCOMES = 20;
const NONE: Approval[] = [];

/** Shows the calls, and what became of those that were shown before. */
export default function Approvals() {
  const { may } = useSession();
  const seconds = useDashboard().pollSeconds.approvals;
  const loaded = useLoad("approvals", (signal) => api.get("/api/v1/approvals", { signal }));
  usePoll(loaded, seconds);
  const [asked, setAsked] = useState<{ approval: Approval; verdict: Verdict } | null>(null);
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);
  const waiting = stillWaiting(loaded.data?.approvals ?? NONE, outcomes);
  const now = useNow(waiting.length > 0);
  const heading = useRef<HTMLHeadingElement>(null);
  const focusNext = useRef<(() => void) | null>(null);
  useChanges(loaded.data?.approvals ?? null, (gone) => setOutcomes((last) => addOutcomes(last, gone)));
  useCardKeys();
  const done = (outcome: Outcome) => {
    announce(`${outcome.approval.tool}: ${outcome.text}`);
    const at = waiting.findIndex((approval) => keyOf(approval) === keyOf(outcome.approval));
    const next = waiting[at + 1] ?? waiting[at - 1];
    setOutcomes((last) => addOutcomes(last, [outcome]));
    focusNext.current = () => (next === undefined ? heading.current : cardOf(keyOf(next)))?.focus();
    loaded.reload();
  };
  // Once the dialog is closed: it gives the focus back to a card that is gone.
  useEffect(() => {
    if (asked !== null) return;
    focusNext.current?.();
    focusNext.current = null;
  }, [asked]);
  return (
    <>
      <div className="page-head">
        <h1 ref={heading} tabIndex={-1}>Approvals</h1>
        <span className="muted">{loaded.data === null ? "" : waitingText(waiting.length)}</span>
      </div>
      <LoadNote loaded={loaded} />
      {loaded.data !== null && waiting.length === 0 && (
        <EmptyState title="No call waits for a decision">
          Calls of the tools in <code>tools.approval</code> of the configuration wait here, and commands of gateways’ agents that ask.
          The list renews itself every {seconds} s.
        </EmptyState>
      )}
      {!may("member") && waiting.length > 0 && <p className="hint">Deciding takes the role member.</p>}
      {waiting.map((approval) => (
        <Card
          key={keyOf(approval)} approval={approval} now={now}
          onAsk={may("member") ? (verdict) => setAsked({ approval, verdict }) : null}
        />
      ))}
      {loaded.data?.approvals.length === MAX_LISTED && (
        <p className="note">At most {MAX_LISTED} are listed. Decide about these to see more.</p>
      )}
      <Outcomes outcomes={outcomes.filter(({ approval }) => !waiting.some((call) => keyOf(call) === keyOf(approval)))} />
      {asked !== null && <Decide {...asked} onDone={done} onClose={() => setAsked(null)} />}
    </>
  );
}

function waitingText(count: number): string {
  return count === 1 ? "1 waits" : `${formatCount(count)} wait`;
}

function addOutcomes(last: Outcome[], more: Outcome[]): Outcome[] {
  const known = new Set(last.map((outcome) => keyOf(outcome.approval)));
  return [...more.filter((outcome) => !known.has(keyOf(outcome.approval))), ...last].slice(0, MAX_OUTCOMES);
}

function cardOf(key: string): HTMLElement | undefined {
  return cards().find((card) => card.dataset["approval"] === key);
}

function cards(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-approval]")];
}

/** Announces calls that came, and hands those on that no longer wait. */
function useChanges(approvals: Approval[] | null, onGone: (gone: Outcome[]) => void): void {
  const before = useRef<Approval[] | null>(null);
  useEffect(() => {
    if (approvals === null) return;
    const { came, left } = compare(before.current ?? approvals, approvals);
    before.current = approvals;
    if (came.length > 0) announce(`${came.length} new: ${came.map((call) => call.tool).join(", ").slice(0, 120)}`);
    if (left.length > 0) {
      onGone(left.map((approval) => ({ approval, text: "decided elsewhere, expired, or its run ended", tone: "idle" })));
    }
  }, [approvals]);
}

/** Walks the cards by j and k; a, w and d do what the buttons of the card in focus do, if it has them. */
function useCardKeys(): void {
  const focused = () => cards().findIndex((card) => card.contains(document.activeElement));
  const move = (step: number) => {
    const all = cards();
    const card = all[Math.min(all.length - 1, Math.max(0, focused() < 0 ? 0 : focused() + step))];
    card?.focus();
    card?.scrollIntoView({ block: "nearest" });
  };
  const ask = (verdict: Verdict) => {
    cards()[focused()]?.querySelector<HTMLButtonElement>(`[data-verdict="${verdict}"]`)?.click();
  };
  useShortcuts([
    { key: "j", label: "Next call", run: () => move(1) },
    { key: "k", label: "Call before", run: () => move(-1) },
    { key: "a", label: "Approve the call in focus", run: () => ask("approve") },
    { key: "w", label: "Approve the command in focus always", run: () => ask("always") },
    { key: "d", label: "Deny the call in focus", run: () => ask("deny") },
  ]);
}

const WORDS: Record<Outcome["tone"], string> = { good: "approved", bad: "denied", warn: "not decided by you", idle: "no longer waits" };

/** Lists what became of calls that were shown in this visit, the last first. */
function Outcomes({ outcomes }: { outcomes: Outcome[] }) {
  if (outcomes.length === 0) return null;
  return (
    <section className="stack" aria-labelledby="outcomes">
      <h2 id="outcomes">Since you opened this page</h2>
      <ul className="outcomes">
        {outcomes.map((outcome) => (
          <li key={keyOf(outcome.approval)}>
            <StateChip state={WORDS[outcome.tone]} tone={outcome.tone} />
            <AgentText text={outcome.approval.tool} form="inline" />
            <RunLink id={outcome.approval.runId} />
            {outcome.text !== WORDS[outcome.tone] && <span className="muted"><AgentText text={outcome.text} form="inline" /></span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
