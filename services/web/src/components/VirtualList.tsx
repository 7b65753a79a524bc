/** List of any length of which only what is near the window is in the document. Rows may have different heights. */
import { type ReactNode, type Ref, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Offsets } from "./offsets";

/** What a page can do with a list. */
export interface VirtualListHandle {
  scrollTo: (index: number) => void;
}

/** Properties: `estimate` is the height in pixels of a row that was not measured yet. */
export interface VirtualListProps<T> {
  label: string;
  items: T[];
  keyOf: (item: T) => string;
  render: (item: T, index: number) => ReactNode;
  estimate: number;
  handle?: Ref<VirtualListHandle>;
  /** Keeps the end in view while items are added, as long as a person has not scrolled away from it. */
  follows?: boolean;
}

const OVERSCAN_PX = 600;
const END_SLACK_PX = 40;

/** Renders the list. */
export function VirtualList<T>({ label, items, keyOf, render, estimate, handle, follows = false }: VirtualListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [view, setView] = useState({ top: 0, height: 600 });
  const [measured, setMeasured] = useState(0);
  const isAtEnd = useRef(true);
  const offsets = useMemo(
    () => new Offsets(items.map((item) => heights.current.get(keyOf(item)) ?? estimate)),
    // `measured` changes whenever a height does.
    [items, estimate, measured],
  );
  const [first, last] = offsets.range(view.top - OVERSCAN_PX, view.top + view.height + OVERSCAN_PX);
  const look = () => {
    const element = box.current;
    if (element === null) return;
    isAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - END_SLACK_PX;
    setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(look, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    if (measure(element, heights.current)) setMeasured((count) => count + 1);
    if (follows && isAtEnd.current) element.scrollTop = element.scrollHeight;
  });
  useImperativeHandle(handle, () => ({
    scrollTo: (index) => {
      isAtEnd.current = index >= items.length;
      if (box.current !== null) box.current.scrollTop = offsets.at(index);
    },
  }), [offsets, items.length]);
  return (
    <div className="virtual" ref={box} onScroll={look} role="log" aria-live="off" aria-label={label} tabIndex={0}>
      <div style={{ height: offsets.total }} className="virtual-all">
        <div style={{ transform: `translateY(${offsets.at(first)}px)` }} className="virtual-shown">
          {items.slice(first, last).map((item, index) => (
            <div key={keyOf(item)} data-row={keyOf(item)}>
              {render(item, first + index)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** Notes the heights of the rows in `element`. Returns whether one is another than before. */
function measure(element: HTMLElement, heights: Map<string, number>): boolean {
  let hasChanged = false;
  for (const row of element.querySelectorAll<HTMLElement>("[data-row]")) {
    const key = row.dataset["row"] ?? "";
    const height = row.offsetHeight;
    if (height > 0 && heights.get(key) !== height) {
      heights.set(key, height);
      hasChanged = true;
    }
  }
  return hasChanged;
}
