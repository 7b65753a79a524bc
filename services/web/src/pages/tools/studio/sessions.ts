/** Reads the sessions of a gateway's agent: what names one, where its transcript is, and when to ask again. Pure. */
import { type Schemas, encodePart } from "../../../api/client";
import { runPath, threadPath } from "../../../components/ObjectLink";
import { isActive } from "../../runs/figures";

/** Session of an agent. */
export type GatewaySession = Schemas["GatewaySession"];

/** Link to the transcript of a session: what it shows, and what it leads to. */
export interface SessionLink {
  to: string;
  text: string;
  target: string;
}

/** Seconds between two questions while a session has a run that has not ended. */
const LIVE_SECONDS = 3;

/**
 * Returns the link of a session: to its thread, or to its last run if it has no thread. The chat shows the threads of
 * `ownAccount` alone, so a session of another account leads to its run, too.
 */
export function sessionLink(session: GatewaySession, ownAccount: string | null): SessionLink {
  const { question, stateKey, lastRun } = session;
  const text = question === null || question.trim() === "" ? (stateKey ?? session.session) : question;
  if (stateKey === null || session.account !== ownAccount) return { to: runPath(lastRun), text, target: `Run ${lastRun}` };
  return { to: threadPath(stateKey), text, target: `Chat ${stateKey}` };
}

/** Returns the key of a session in a list. Accounts may use the same name. */
export function sessionKey({ account, session }: Pick<GatewaySession, "account" | "session">): string {
  return `${account} ${session}`;
}

/** Returns the seconds until the next question: few while a session's last run has not ended. */
export function sessionSeconds(sessions: Pick<GatewaySession, "state">[], usual: number): number {
  return sessions.some(isActive) ? LIVE_SECONDS : usual;
}

/** Returns the address of a page of the sessions, on the page of their agent; null is the first one. */
export function sessionsLink(cursor: string | null): string {
  return cursor === null ? "?tab=sessions" : `?tab=sessions&cursor=${encodePart(cursor)}`;
}
