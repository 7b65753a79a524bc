/** Lists the threads of the account, opens them and removes them. */
import { useRef, useState } from "react";
import { type Schemas, encodePart } from "../../api/client";
import { Link, useLocation } from "../../base/router";
import { useSession } from "../../base/session";
import { visibleText } from "../../base/text/marks";
import { AgentText, cutAt } from "../../components/AgentText";
import { Confirm } from "../../components/Dialog";
import { ErrorNote, Skeleton } from "../../components/Notes";
import { Time } from "../../components/Time";
import type { Threads } from "./useThreads";

const TITLE_CHARS = 60;

/** Renders the list. `current` is the thread that is open. */
export function ThreadList({ threads, current }: { threads: Threads; current: string | null }) {
  const { may } = useSession();
  const { navigate } = useLocation();
  const list = useRef<HTMLElement>(null);
  const [removed, setRemoved] = useState<Schemas["Thread"] | null>(null);
  return (
    <nav className="threads" aria-label="Threads" ref={list} tabIndex={-1}>
      <Link to="/chat" className="threads-new" isCurrent={current === null}>
        New chat
      </Link>
      <Link to="/chat" className="threads-back">
        New chat and all threads
      </Link>
      {threads.error !== null && <ErrorNote error={threads.error} onRetry={threads.reload} />}
      {threads.list === null && threads.error === null && <Skeleton rows={5} />}
      {threads.list?.length === 0 && <p className="hint">No threads so far. A first question begins one.</p>}
      <ul>
        {threads.list?.map((thread) => (
          <Row
            key={thread.stateKey} thread={thread} isCurrent={thread.stateKey === current}
            onRemove={may("member") ? () => setRemoved(thread) : null}
          />
        ))}
      </ul>
      {threads.hasMore && (
        <button type="button" className="quiet" onClick={threads.more}>
          Show older threads
        </button>
      )}
      {removed !== null && (
        <Confirm
          title="Delete this thread?" action="Delete" tone="danger" onClose={() => setRemoved(null)}
          onConfirm={async () => {
            await threads.remove(removed.stateKey);
            if (removed.stateKey === current) navigate("/chat");
            else setTimeout(() => list.current?.focus());
          }}
        >
          <p>
            <AgentText text={removed.title} form="inline" />
          </p>
          <p className="hint">Its questions, answers and workspaces are removed for good. Usage and receipts of its runs stay.</p>
        </Confirm>
      )}
    </nav>
  );
}

function Row({ thread, isCurrent, onRemove }: { thread: Schemas["Thread"]; isCurrent: boolean; onRemove: (() => void) | null }) {
  return (
    <li>
      <Link to={`/chat/${encodePart(thread.stateKey)}`} isCurrent={isCurrent}>
        <span className="threads-title">
          <AgentText text={thread.title} form="inline" />
        </span>
        <small>
          <Time at={thread.changedAt} /> · {thread.turns === 1 ? "1 turn" : `${thread.turns} turns`}
        </small>
      </Link>
      {onRemove !== null && (
        <button
          type="button" className="quiet" onClick={onRemove}
          aria-label={`Delete the thread ${visibleText(cutAt(thread.title, TITLE_CHARS))}`}
        >
          <span aria-hidden="true">✕</span>
        </button>
      )}
    </li>
  );
}
