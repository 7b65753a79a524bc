/** Says what happens with the answer now: its place in the queue, its phase, what the agent does, and how the connection is. */
import type { Schemas } from "../../api/client";
import { AgentText } from "../../components/AgentText";
import { StreamNote } from "../../components/StreamNote";
import type { Link } from "./link";
import type { Answer } from "./message";

const PHASES = new Map([
  ["queued", "Waiting for a free place"], ["preparing", "Preparing the sandbox"], ["starting", "Starting the agent"],
  ["running", "The agent works"], ["collecting", "Collecting its commits"], ["settling", "Reading usage, removing the sandbox"],
]);
const ACTIVITIES = new Map([
  ["thinking", "thinking"], ["tool_use", "using a tool"], ["compacting", "shortening the conversation"], ["waiting", "waiting"],
]);

/** Properties: the answer that is given, or null if there is none yet. */
export interface StatusLineProps {
  link: Link;
  answer: Answer | null;
  queue: Schemas["QueuePosition"] | null;
  onRetry: () => void;
}

/** Renders the line; nothing if no answer is being given. */
export function StatusLine({ link, answer, queue, onRetry }: StatusLineProps) {
  switch (link.kind) {
    case "idle":
    case "refused":
      return null;
    case "connecting":
      return <p className="chat-status">{answer === null ? null : "Resuming the answer …"}</p>;
    case "paused":
      return <p className="chat-status">Paused while the tab is hidden. The run goes on.</p>;
    case "stopping":
      return <p className="chat-status chat-busy">Stopping the run …</p>;
    case "lost":
      return (
        <p className="chat-status">
          The answer broke off; the run goes on. <StreamNote state={link} onRetry={onRetry} />
        </p>
      );
    case "live":
      return (
        <p className="chat-status chat-busy">
          {phaseText(answer, queue)}
          {answer?.activity?.label !== null && answer?.activity !== null && answer !== null && (
            <>
              {" "}
              <AgentText text={answer.activity.label} form="inline" />
            </>
          )}
        </p>
      );
  }
}

/** Returns the phase in words, with the place in the queue. */
export function phaseText(answer: Answer | null, queue: { ahead: number; waiting: number } | null): string {
  if (answer === null || answer.state.kind !== "open") return answer === null ? "Ordering the run" : "Ending";
  const { phase, ahead, waiting } = answer.state;
  const words = PHASES.get(phase) ?? phase;
  if (phase === "queued") {
    const place = queue ?? (ahead === null || waiting === null ? null : { ahead, waiting });
    if (place === null) return words;
    return `${words}: ${place.ahead === 0 ? "next of this account" : `${place.ahead} before it`}, ${place.waiting} waiting in all`;
  }
  const activity = answer.activity === null ? undefined : ACTIVITIES.get(answer.activity.kind);
  return activity === undefined ? words : `${words}: ${activity}`;
}
