/** Shows what stands in place of content: grey rows while it loads, that there is nothing, or what failed. */
import { Component, type ReactNode, useEffect, useState } from "react";
import { type ApiError, toApiError, unreachable } from "../api/problem";
import { AgentText } from "./AgentText";
import { Time } from "./Time";

/** Wait before something is shown: what comes sooner needs no sign. */
const DELAY_MS = 300;

/** Renders `rows` grey rows while something loads. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), DELAY_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isShown) return <div className="skeleton-wait" aria-busy="true" />;
  return (
    <div className="skeleton" aria-busy="true" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="skeleton-row" aria-hidden="true" />
      ))}
    </div>
  );
}

/** Properties: `onClear` is there if a filter hides everything. */
export interface EmptyStateProps {
  title: string;
  children?: ReactNode;
  onClear?: (() => void) | undefined;
}

/** Says that there is nothing to show, why, and what to do. */
export function EmptyState({ title, children, onClear }: EmptyStateProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children !== undefined && <div className="empty-what">{children}</div>}
      {onClear !== undefined && (
        <button type="button" onClick={onClear}>
          Clear the filters
        </button>
      )}
    </div>
  );
}

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

/** Says what failed, and what to do. */
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

/** Words with which browsers and the bundler say that a part of the page did not come. */
const LOST_PART = /dynamically imported|module script|preload/i;

function describe(thrown: unknown): ApiError {
  return thrown instanceof Error && LOST_PART.test(thrown.message) ? unreachable() : toApiError(thrown);
}

/** Loads the document anew, but not while nothing answers: the browser would show a page of its own. */
function reload(): void {
  fetch("/healthz").then(() => window.location.reload(), () => undefined);
}

/** Shows a note instead of a page that failed, so that the navigation stays. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: ApiError | null }> {
  override state: { error: ApiError | null } = { error: null };

  static getDerivedStateFromError(thrown: unknown): { error: ApiError } {
    return { error: describe(thrown) };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return <ErrorNote error={this.state.error} onRetry={reload} />;
  }
}
