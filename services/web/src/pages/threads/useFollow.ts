/** Keeps the end of the page in view while it grows, as long as a person has not scrolled away from it. */
import { useCallback, useEffect, useRef, useState } from "react";

const SLACK_PX = 80;

function isNearEnd(): boolean {
  const { scrollHeight, clientHeight } = document.documentElement;
  return window.scrollY + clientHeight >= scrollHeight - SLACK_PX;
}

function scrollToEnd(): void {
  window.scrollTo({ top: document.documentElement.scrollHeight });
}

/** Returns whether the end is in view, and a function that goes there. */
export function useFollow(): { isAtEnd: boolean; toEnd: () => void } {
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = useCallback(() => {
    follows.current = true;
    scrollToEnd();
  }, []);
  useEffect(() => {
    const look = () => {
      follows.current = isNearEnd();
      setAtEnd(follows.current);
    };
    const observer = new ResizeObserver(() => {
      if (follows.current) scrollToEnd();
      else look();
    });
    observer.observe(document.body);
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      window.removeEventListener("scroll", look);
    };
  }, []);
  return { isAtEnd, toEnd };
}
