/** Shows a note instead of a page that failed, so that the navigation stays. */
import { Component, type ReactNode } from "react";
import { type ApiError, toApiError, unreachable } from "../api/problem";
import { ErrorNote } from "./ErrorNote";

/** Words with which browsers and the bundler say that a part of the page did not come. */
const LOST_PART = /dynamically imported|module script|preload/i;

function describe(thrown: unknown): ApiError {
  return thrown instanceof Error && LOST_PART.test(thrown.message) ? unreachable() : toApiError(thrown);
}

/** Loads the document anew, but not while nothing answers: the browser would show a page of its own. */
function reload(): void {
  fetch("/healthz").then(() => window.location.reload(), () => undefined);
}

/** Boundary around one page. */
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
