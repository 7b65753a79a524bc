/** Says why an order was refused, and offers what helps: wait, send again, or take the question back. */
import { useEffect, useState } from "react";
import { encodePart } from "../../api/client";
import { Link } from "../../base/router";
import { OF_LIMITS } from "../../components/FailureHelp";
import { ErrorNote } from "../../components/Notes";
import type { Link as ChatLink } from "./link";

/** Properties: the refusal, and what can be done about it. */
export interface RefusalProps {
  refusal: Extract<ChatLink, { kind: "refused" }>;
  account: string;
  onRetry: () => void;
  /** Gives the order up. */
  onTakeBack: () => void;
  /** Gives the order up, and follows the answer that is being given. */
  onShowOther: () => void;
}

/** Renders the refusal. */
export function Refusal({ refusal, account, onRetry, onTakeBack, onShowOther }: RefusalProps) {
  const { error, order } = refusal;
  const wait = useCountdown(error.retryAfterSeconds ?? 0, refusal);
  const again = order === null ? "Try again" : "Send again";
  return (
    <ErrorNote error={error}>
      {OF_LIMITS.has(error.code) && (
        <div>
          <Link to={`/accounts/${encodePart(account)}`}>Limits of the account</Link>
        </div>
      )}
      <div className="bar-line">
        {error.code === "thread_busy" && (
          <button type="button" onClick={onShowOther}>
            Show that answer
          </button>
        )}
        <button type="button" disabled={wait > 0} onClick={onRetry}>
          {wait > 0 ? `${again} in ${wait} s` : again}
        </button>
        {order !== null && (
          <button type="button" onClick={onTakeBack}>
            {order.kind === "send" ? "Take it back" : "Leave it"}
          </button>
        )}
      </div>
    </ErrorNote>
  );
}

/** Returns the seconds that are left of `seconds` since `subject` has changed. */
function useCountdown(seconds: number, subject: object): number {
  const [since, setSince] = useState({ subject, at: Date.now() });
  const [now, setNow] = useState(Date.now);
  if (since.subject !== subject) setSince({ subject, at: Date.now() });
  const left = Math.max(0, Math.ceil((since.at + seconds * 1000 - now) / 1000));
  useEffect(() => {
    if (left === 0) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [left]);
  return left;
}
