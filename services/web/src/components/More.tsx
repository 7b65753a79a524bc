/** Ends of lists that are loaded page by page: what failed, and a button for the next page. */
import type { Pages } from "../api/usePages";
import { ErrorNote, Skeleton } from "./Notes";

/** Renders the state of `pages` below their items. */
export function More<T>({ pages }: { pages: Pages<T> }) {
  if (pages.error !== null) return <ErrorNote error={pages.error} onRetry={pages.retry} />;
  if (pages.isLoading) return pages.items === null ? <Skeleton rows={5} /> : <p className="muted">Loading …</p>;
  if (pages.more === null) return null;
  return (
    <button type="button" onClick={pages.more}>
      Show more
    </button>
  );
}
