/** Links between the pages of a list whose page is in the address. */
import { Link } from "../base/router";

/** Properties: addresses of the first page and of the next one; null where the list has no such page, or shows it. */
export interface PagerProps {
  newest: string | null;
  older: string | null;
}

/** Renders the links. */
export function Pager({ newest, older }: PagerProps) {
  return (
    <nav className="pager" aria-label="Pages of the list">
      {newest !== null && <Link to={newest}>⇤ Newest</Link>}
      {older !== null && <Link to={older}>Older →</Link>}
    </nav>
  );
}
