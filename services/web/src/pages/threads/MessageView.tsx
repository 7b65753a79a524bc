/** Shows one message: a question, or an answer with its tools and how it ended. */
import { type ReactNode, memo } from "react";
import { encodePart } from "../../api/client";
import { Link } from "../../base/router";
import { useSession } from "../../base/session";
import { formatCount } from "../../base/text/format";
import { AgentText } from "../../components/AgentText";
import { FailureHelp } from "../../components/FailureHelp";
import { StateChip } from "../../components/StateChip";
import { Time } from "../../components/Time";
import { AnswerText } from "./AnswerText";
import { DecidedBy } from "./DecidedBy";
import { type Answer, type ChatMessage, readAnswer, textField, textOf } from "./message";
import { type PartView, viewParts } from "./parts";
import { ToolCard } from "./ToolCard";

/** Renders a message. It is rendered anew only if it has changed. */
export const MessageView = memo(function MessageView({ message }: { message: ChatMessage }) {
  return message.role === "user" ? <Question message={message} /> : <AnswerView message={message} />;
});

function Question({ message }: { message: ChatMessage }) {
  return (
    <article className="chat-question" aria-label="Question">
      <div className="chat-prose">
        <AgentText text={textOf(message)} />
      </div>
      <small>
        <Time at={textField(message.metadata, "createdAt")} />
      </small>
    </article>
  );
}

function AnswerView({ message }: { message: ChatMessage }) {
  const answer = readAnswer(message);
  const parts = viewParts(message);
  const phase = answer.state.kind === "open" ? "open" : "ended";
  const lastText = parts.findLastIndex((part) => part.kind === "text");
  return (
    <article className="chat-answer" aria-label="Answer">
      <AnswerHead answer={answer} />
      {parts.map((part, index) => (
        <div key={index} className={part.kind === "text" && index !== lastText ? "chat-aside" : undefined}>
          <PartOf part={part} phase={phase} />
        </div>
      ))}
      <Ending answer={answer} isEmpty={parts.length === 0} />
    </article>
  );
}

function AnswerHead({ answer }: { answer: Answer }) {
  return (
    <header className="chat-answer-head">
      {answer.agentId !== null && <AgentText text={answer.agentId} form="inline" />}
      {answer.at !== null && <Time at={answer.at} />}
      {answer.totalTokens !== null && answer.totalTokens > 0 && <span>{formatCount(answer.totalTokens)} tokens</span>}
      {answer.runId !== null && <Link to={runAddress(answer.runId)}>Run</Link>}
    </header>
  );
}

function runAddress(run: string): string {
  return `/sandbox/${encodePart(run)}`;
}

function PartOf({ part, phase }: { part: PartView; phase: "open" | "ended" }): ReactNode {
  switch (part.kind) {
    case "text":
      return <AnswerText text={part.text} />;
    case "tool":
      return <ToolCard call={part.call} phase={phase} />;
    case "link":
      return (
        <p className="chat-source">
          Source: <AgentText text={part.title} form="inline" />{" "}
          <a className="open-link" href={part.href} target="_blank" rel="noopener noreferrer nofollow">
            go to {part.host}
          </a>
        </p>
      );
    case "leftOut":
      return <p className="hint">Left out: {part.what}.</p>;
  }
}

function Ending({ answer, isEmpty }: { answer: Answer; isEmpty: boolean }) {
  switch (answer.state.kind) {
    case "open":
      return null;
    case "succeeded":
      return isEmpty ? <p className="hint">The answer is empty, or is not kept any more.</p> : null;
    case "cancelled":
      return (
        <p>
          <StateChip state="cancelled" />
        </p>
      );
    case "failed":
      return <Failure {...answer.state} answer={answer} />;
  }
}

function Failure({ code, message, state, answer }: { code: string; message: string; state: string; answer: Answer }) {
  const { runId, agentId } = answer;
  const session = useSession().state;
  const account = session.kind === "signedIn" ? session.session.account : "ACCOUNT";
  return (
    <div className="error-note">
      <div>
        <StateChip state={state} code={code} />
      </div>
      <div>
        <AgentText text={message} form="inline" />
      </div>
      <FailureHelp code={code} account={account} run={runId === null ? null : runAddress(runId)}>
        {runId !== null && code === "quota_exhausted" ? (
          <DecidedBy runId={runId} agentId={agentId} account={account} code={code} />
        ) : undefined}
      </FailureHelp>
    </div>
  );
}
