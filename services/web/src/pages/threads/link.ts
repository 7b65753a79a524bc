/** Names the states of a conversation, how a request of it may end, and when the next attempt is made. */
import { ApiError, toApiError, unreachable } from "../../api/problem";
import { type ChatMessage, hasEnded } from "./message";
import type { Progress } from "./progress";

/** Order of an answer. The same order again is the same run. `gatewayAgent` is an agent of the gateway that `agent` uses. */
export type Order =
  | { kind: "send"; id: string; text: string; agent: string | null; gatewayAgent: string | null }
  | { kind: "regenerate"; answerId: string; requestId: string; agent: string | null; gatewayAgent: string | null };

/** State of a conversation: idle, or how it stands with the answer that is being given. */
export type Link =
  | { kind: "idle" }
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "stopping" }
  | { kind: "paused" }
  | { kind: "lost"; retryAt: number; error: ApiError }
  | { kind: "refused"; error: ApiError; order: Order | null };

/** State of a conversation with what an agent writes on its way. */
export interface SessionView {
  link: Link;
  progress: Progress;
}

/** What the client reported of a request: how its stream ended, and its error. */
export interface Report {
  ending: "none" | "finished" | "aborted";
  error: Error | null;
  /** Time at which the answer began; null if there was none. */
  answeredAt: number | null;
}

/** Meaning of a report. `silent`: no answer is being given. */
export type Outcome =
  | { kind: "ended" }
  | { kind: "aborted" }
  | { kind: "silent" }
  | { kind: "lost"; error: ApiError }
  | { kind: "refused"; error: ApiError };

/**
 * Says how a request ended. The end of a stream alone is not a success: without the server's word, it was lost. An order that got
 * no answer is refused, and may be sent again; a stream that could not be resumed is tried again.
 */
export function outcomeOf(report: Report, what: "order" | "resume", last: ChatMessage | undefined): Outcome {
  const { ending, error } = report;
  if (ending === "aborted") return hasEnded(last) ? { kind: "ended" } : { kind: "aborted" };
  if (error instanceof ApiError) {
    const isFinal = what === "order" || !error.isTransient;
    return { kind: isFinal ? "refused" : "lost", error };
  }
  if (error === null && ending === "none") return { kind: what === "resume" ? "silent" : "aborted" };
  if (hasEnded(last)) return { kind: "ended" };
  if (error !== null && error.name.startsWith("AI_")) return { kind: "refused", error: unreadable(error) };
  return { kind: "lost", error: error === null ? unreachable() : toLost(error) };
}

function toLost(error: Error): ApiError {
  return error instanceof TypeError ? unreachable() : toApiError(error);
}

function unreadable(error: Error): ApiError {
  return new ApiError({
    status: -1,
    code: "answer_unreadable",
    detail: `The answer cannot be read: ${(error.message.split(" Error message:")[0] ?? "").slice(0, 200)}`,
    help: "reload the page, which may be older than the server",
  });
}

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
/** A connection that lasted this long was not a failure to connect. */
const STEADY_MS = 5_000;

/** Waits that double up to a bound. */
export class Backoff {
  #failures = 0;

  /** Returns the wait after a connection that began at `answeredAt`, which is null if there was none. */
  next(answeredAt: number | null, now: number): number {
    if (answeredAt !== null && now - answeredAt >= STEADY_MS) this.#failures = 0;
    this.#failures += 1;
    return Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (this.#failures - 1));
  }

  /** Forgets all failures. */
  reset(): void {
    this.#failures = 0;
  }
}
