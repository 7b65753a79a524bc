/** Shows a note instead of a page that failed, so that the navigation stays. */
import { Component, type ReactNode } from "react";
import { type ApiError, toApiError } from "../api/problem";
import { ErrorNote } from "./ErrorNote";

/** Boundary around one page. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: ApiError | null }> {
  override state: { error: ApiError | null } = { error: null };

  static getDerivedStateFromError(thrown: unknown): { error: ApiError } {
    return { error: toApiError(thrown) };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return <ErrorNote error={this.state.error} onRetry={() => window.location.reload()} />;
  }
}
