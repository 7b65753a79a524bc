/** Tabs of a page, as the ARIA pattern has them: arrow keys move, and the shown tab is in the address. */
import { type KeyboardEvent, type ReactNode, Suspense, useId, useRef } from "react";
import { Skeleton } from "./Notes";

/** One tab. `count` is shown behind its label. */
export interface Tab {
  id: string;
  label: string;
  count?: number | undefined;
  render: () => ReactNode;
}

/** Properties: the tabs, which is shown, and what chooses another. */
export interface TabsProps {
  label: string;
  tabs: Tab[];
  shown: string;
  onShow: (id: string) => void;
}

/** Renders the tabs and the content of the shown one. */
export function Tabs({ label, tabs, shown, onShow }: TabsProps) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const current = tabs.find((tab) => tab.id === shown) ?? tabs[0];
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex((tab) => tab.id === current?.id);
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const target = steps[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = (target + tabs.length) % tabs.length;
    const next = tabs[index];
    if (next === undefined) return;
    onShow(next.id);
    (list.current?.children[index] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.id} type="button" role="tab" id={`${base}-${tab.id}`} aria-controls={`${base}-panel`}
            aria-selected={tab === current} tabIndex={tab === current ? 0 : -1} onClick={() => onShow(tab.id)}
          >
            {tab.label}
            {tab.count !== undefined && <span className="tab-count">{tab.count.toLocaleString("en")}</span>}
          </button>
        ))}
      </div>
      <div className="tab-panel" role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${current?.id}`} tabIndex={0}>
        <Suspense fallback={<Skeleton rows={5} />}>{current?.render()}</Suspense>
      </div>
    </>
  );
}
