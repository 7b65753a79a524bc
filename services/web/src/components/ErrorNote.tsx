/** Shows why a request failed, and what would change the outcome. */
import type { ReactNode } from "react";
import type { ApiError } from "../api/problem";
import { AgentText } from "./AgentText";
import { Time } from "./Time";

/** Properties: `staleSince` says since when older data is shown below. */
export interface ErrorNoteProps {
  error: ApiError;
  onRetry?: (() => void) | undefined;
  staleSince?: number | null | undefined;
  /** Replaces the title that follows from the status. */
  title?: string | undefined;
  children?: ReactNode;
}

const TITLES = new Map<number, string>([
  [0, "No connection"],
  [401, "Not signed in"],
  [403, "Your role does not allow this"],
  [404, "Not found, or of another account"],
  [409, "Something else happened meanwhile"],
  [429, "Too many requests"],
  [503, "Not available now"],
]);

/** Renders the failure. */
export function ErrorNote({ error, onRetry, staleSince, title, children }: ErrorNoteProps) {
  return (
    <div className="error-note" role="alert">
      <strong>{title ?? TITLES.get(error.status) ?? "That did not work"}</strong>
      <div>
        <AgentText text={error.message} form="inline" />
      </div>
      {error.help !== "" && (
        <div className="error-help">
          To do: <AgentText text={error.help} form="inline" />
        </div>
      )}
      {staleSince !== null && staleSince !== undefined && (
        <div>
          What is shown is not newer than <Time at={new Date(staleSince).toISOString()} />.
        </div>
      )}
      {children}
      <div className="error-foot">
        <code>{error.code}</code>
        {onRetry !== undefined && (
          <button type="button" onClick={onRetry}>
            Try again
          </button>
        )}
      </div>
    </div>
  );
}
