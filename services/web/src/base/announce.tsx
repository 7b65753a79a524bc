/** Tells people who hear the page what changed: one polite live region, at most one text in two seconds. */
import { useEffect, useState } from "react";
import { visibleText } from "./text/marks";

const INTERVAL_MS = 2_000;
type Listener = (text: string) => void;
let listener: Listener | null = null;
let pending: string | null = null;
let lastAt = 0;

/** Announces `text`. A later text within the interval replaces one that was not read yet. */
export function announce(text: string): void {
  const wait = lastAt + INTERVAL_MS - Date.now();
  if (pending === null) setTimeout(flush, Math.max(0, wait));
  pending = visibleText(text);
}

function flush(): void {
  lastAt = Date.now();
  if (pending !== null) listener?.(pending);
  pending = null;
}

/** Live region of the page. There is one. */
export function LiveRegion() {
  const [text, setText] = useState("");
  useEffect(() => {
    listener = setText;
    return () => {
      listener = null;
    };
  }, []);
  return (
    <div className="visually-hidden" aria-live="polite" role="status">
      {text}
    </div>
  );
}
