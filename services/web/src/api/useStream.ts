/** Follows a stream of the API for as long as a component is shown. */
import { useEffect, useRef, useState } from "react";
import { LiveStream, type StreamState } from "./stream";

/** Stream of a component: its path (null follows nothing), the last number the page has, and what hears of items. */
export interface StreamUse<T> {
  path: string | null;
  after?: number;
  onItems: (items: T[]) => void;
  onRestart?: () => void;
  isLast?: (item: T) => boolean;
  /** Another number follows the stream anew, behind `after`. */
  round?: number;
}

/** Returns the state of the stream, and a function that connects at once. */
export function useStream<T>(use: StreamUse<T>): { state: StreamState; retryNow: () => void } {
  const [state, setState] = useState<StreamState>({ kind: "connecting" });
  const latest = useRef(use);
  latest.current = use;
  const stream = useRef<LiveStream<T> | null>(null);
  useEffect(() => {
    if (use.path === null) return;
    const after = latest.current.after;
    stream.current = new LiveStream<T>({
      path: use.path,
      ...(after === undefined ? {} : { after }),
      onItems: (items) => latest.current.onItems(items),
      isLast: (item) => latest.current.isLast?.(item) ?? false,
      onRestart: () => latest.current.onRestart?.(),
      onState: setState,
    }).open();
    return () => stream.current?.close();
  }, [use.path, use.round]);
  return { state, retryNow: () => stream.current?.retryNow() };
}
