/** Shows one conversation: its messages, the answer that is being given, and the field for the next question. */
import { useEffect, useState } from "react";
import { announce } from "../../base/announce";
import { useSession } from "../../base/session";
import { AgentText } from "../../components/AgentText";
import { ErrorNote } from "../../components/Notes";
import { Approvals } from "./Approvals";
import { Composer } from "./Composer";
import { Earlier } from "./Earlier";
import { GatewayAgentNote } from "./GatewayAgentNote";
import { Limits } from "./Limits";
import type { Link } from "./link";
import { type Answer, textOf } from "./message";
import { MessageView } from "./MessageView";
import type { Progress } from "./progress";
import { Refusal } from "./Refusal";
import { StatusLine } from "./StatusLine";
import type { Begin } from "./useChatSession";
import { useConversation } from "./useConversation";
import { useFollow } from "./useFollow";
import { useSpoken } from "./useSpoken";

/** Properties: what the conversation begins with, and where the messages before begin. */
export interface ConversationProps extends Omit<Begin, "onEnded" | "onUnsent"> {
  title: string;
  account: string;
  cursor: string | null;
  /** Called when a run of the thread began or ended. */
  onChanged: () => void;
}

type Shown = ReturnType<typeof useConversation>;

/** Renders the conversation. */
export function Conversation({ title, account, cursor, onChanged, ...begin }: ConversationProps) {
  const [round, setRound] = useState(0);
  const shown = useConversation({ ...begin, onEnded: () => setRound((last) => last + 1) });
  const { session, messages, link, answer, open, watch } = shown;
  const last = messages.at(-1);
  const runId = open?.runId ?? "";
  const { isAtEnd, toEnd } = useFollow();
  useSpoken(answer === null || last === undefined ? "" : textOf(last), link.kind === "live" ? "live" : "quiet", endingOf(answer));
  useNews(watch.approvals.length, link);
  useEffect(() => {
    if (last?.role === "user") toEnd();
  }, [last?.id]);
  useEffect(() => {
    if (runId !== "" || round > 0) onChanged();
  }, [runId, round]);
  return (
    <div className="chat-main">
      <div className="chat-head">
        <h1>
          <AgentText text={title} form="inline" />
        </h1>
        <Limits account={account} round={round} />
      </div>
      <Earlier thread={begin.thread} cursor={cursor} chat={session.chat} />
      <div className="chat-log" role="log" aria-live="off" aria-label="Messages">
        {messages.map((message) => (
          <MessageView key={message.id} message={message} />
        ))}
      </div>
      <Now shown={shown} account={account} />
      <Foot shown={shown} onToEnd={isAtEnd ? null : toEnd} />
    </div>
  );
}

/** Shows what happens now, below the messages. */
function Now({ shown, account }: { shown: Shown; account: string }) {
  const { link, progress, open, answer, watch, error } = shown;
  const { may } = useSession();
  const decided = () => {
    watch.reload();
    shown.keepFocus();
  };
  return (
    <>
      {open !== null && <OnItsWay progress={progress} />}
      <Approvals approvals={watch.approvals} run={answer?.runId ?? null} onDecided={decided} />
      <StatusLine link={link} answer={answer} queue={watch.queue} onRetry={shown.retry} />
      {error !== null && <ErrorNote error={error} />}
      {link.kind === "refused" && (
        <Refusal
          refusal={link} account={account} onRetry={shown.retry} onTakeBack={shown.takeBack} onShowOther={shown.showOther}
        />
      )}
      {link.kind === "idle" && answer !== null && may("member") && (
        <div className="bar-line">
          <button type="button" className="quiet chat-again" onClick={shown.regenerate}>
            Regenerate
          </button>
        </div>
      )}
    </>
  );
}

function Foot({ shown, onToEnd }: { shown: Shown; onToEnd: (() => void) | null }) {
  const { may } = useSession();
  return (
    <div className="chat-foot">
      {onToEnd !== null && (
        <button type="button" className="chat-to-end" onClick={onToEnd}>
          Go to the end
        </button>
      )}
      <GatewayAgentNote />
      {may("member") ? <Composer {...shown.composer} /> : <p className="hint">To ask a question takes the role member.</p>}
    </div>
  );
}

function OnItsWay({ progress: { text, missed } }: { progress: Progress }) {
  if (text === "" && missed === 0) return null;
  return (
    <details className="chat-progress" open>
      <summary>What the agent writes on its way{missed > 0 && ` (${missed} pieces were missed)`}</summary>
      <AgentText text={text} />
    </details>
  );
}

function endingOf(answer: Answer | null): string {
  switch (answer?.state.kind) {
    case "succeeded":
      return "The answer is complete.";
    case "cancelled":
      return "The run was cancelled.";
    case "failed":
      return `The run has failed: ${answer.state.message}`;
    default:
      return "";
  }
}

function useNews(waiting: number, link: Link): void {
  useEffect(() => {
    if (waiting > 0) announce(waiting === 1 ? "A call waits for your decision." : `${waiting} calls wait for your decision.`);
  }, [waiting]);
  useEffect(() => {
    if (link.kind === "lost") announce("The answer broke off. It will be resumed.");
  }, [link.kind]);
}
