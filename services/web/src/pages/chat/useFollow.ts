/** Keeps the end of the page in view while an answer grows, as long as a person has not scrolled away from it. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

const SLACK_PX = 80;

function isNearEnd(): boolean {
  const { scrollHeight, clientHeight } = document.documentElement;
  return window.scrollY + clientHeight >= scrollHeight - SLACK_PX;
}

/**
 * Follows the end whenever one of `content` changes, of which there are always as many. Returns whether the end is in view, and
 * a function that goes there.
 */
export function useFollow(content: readonly unknown[]): { isAtEnd: boolean; toEnd: () => void } {
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = useCallback(() => {
    follows.current = true;
    window.scrollTo({ top: document.documentElement.scrollHeight });
  }, []);
  useEffect(() => {
    const look = () => {
      follows.current = isNearEnd();
      setAtEnd(follows.current);
    };
    window.addEventListener("scroll", look, { passive: true });
    return () => window.removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (follows.current) window.scrollTo({ top: document.documentElement.scrollHeight });
  }, [...content]);
  return { isAtEnd, toEnd };
}
