/** Chat: the threads of the account, and the one that is open. */
import "./zod";
import { useState } from "react";
import { useLoad } from "../../api/useLoad";
import { Link, useLocation } from "../../base/router";
import { useSession } from "../../base/session";
import { AgentText } from "../../components/AgentText";
import { EmptyState, ErrorNote, Skeleton } from "../../components/Notes";
import { readPage } from "./access";
import { Conversation } from "./Conversation";
import { findFirst } from "./drafts";
import { textOf } from "./message";
import { NewChat } from "./NewChat";
import { ThreadList } from "./ThreadList";
import { type Threads, useThreads } from "./useThreads";
import "./chat.css";

const TITLE_CHARS = 80;

/** Shows the threads with an open one, or with a new one. */
export default function ChatPage() {
  const { params } = useLocation();
  const { state } = useSession();
  const threads = useThreads();
  const thread = params["thread"] ?? null;
  if (state.kind !== "signedIn") return null;
  const { account } = state.session;
  return (
    <div className={thread === null ? "chat" : "chat chat-open"}>
      <ThreadList threads={threads} current={thread} />
      {thread === null ? <NewChat account={account} /> : <OpenThread thread={thread} account={account} threads={threads} />}
    </div>
  );
}

function OpenThread({ thread, account, threads }: { thread: string; account: string; threads: Threads }) {
  const [first] = useState(() => findFirst(thread));
  const page = useLoad(first === null ? `thread ${thread}` : null, (signal) => readPage(thread, null, signal));
  const listed = threads.list?.find((one) => one.stateKey === thread)?.title;
  if (first !== null) {
    const title = listed ?? first.text.slice(0, TITLE_CHARS);
    return <Conversation title={title} {...{ account, thread, first }} messages={[]} cursor={null} onChanged={threads.reload} />;
  }
  if (page.data === null) {
    return (
      <div className="chat-main">
        <div className="chat-head">
          <h1>
            <AgentText text={listed ?? thread} form="inline" />
          </h1>
        </div>
        <ThreadState error={page.error} onRetry={page.reload} />
      </div>
    );
  }
  const { messages, cursor } = page.data;
  const question = messages.find((message) => message.role === "user");
  const title = listed ?? (question === undefined ? thread : textOf(question).slice(0, TITLE_CHARS));
  return <Conversation {...{ title, account, thread, messages, cursor, first }} onChanged={threads.reload} />;
}

function ThreadState({ error, onRetry }: { error: ReturnType<typeof useLoad>["error"]; onRetry: () => void }) {
  if (error === null) return <Skeleton rows={8} />;
  if (error.status !== 404) return <ErrorNote error={error} onRetry={onRetry} />;
  return (
    <EmptyState title="There is no such thread">
      It was deleted, it belongs to another account, or its first question was not sent. <Link to="/chat">Begin a new chat</Link>
    </EmptyState>
  );
}
