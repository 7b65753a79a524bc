/** Says that there is nothing to show, why, and what to do. */
import type { ReactNode } from "react";

/** Properties: `onClear` is there if a filter hides everything. */
export interface EmptyStateProps {
  title: string;
  children?: ReactNode;
  onClear?: (() => void) | undefined;
}

/** Renders the state. */
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
