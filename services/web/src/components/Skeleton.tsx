/** Shows grey rows while something loads, after 300 ms: what comes sooner needs no sign. */
import { useEffect, useState } from "react";

const DELAY_MS = 300;

/** Renders `rows` grey rows. */
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
