/** Keyboard shortcuts: each page registers its own, and `?` lists what holds now. */
import { useEffect, useRef, useSyncExternalStore } from "react";

/** Shortcut: its key as `KeyboardEvent.key` has it, what it does in words, and what it does. */
export interface Shortcut {
  key: string;
  label: string;
  run: () => void;
}

let registered: Shortcut[][] = [];
const listeners = new Set<() => void>();

function publish(next: Shortcut[][]): void {
  registered = next;
  for (const listener of listeners) listener();
}

/** Registers shortcuts while the component is shown. Later ones win. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const keys = shortcuts.map((shortcut) => `${shortcut.key}${shortcut.label}`).join();
  useEffect(() => {
    const group = latest.current.map(({ key, label }) => ({
      key,
      label,
      run: () => latest.current.find((shortcut) => shortcut.key === key)?.run(),
    }));
    publish([...registered, group]);
    return () => publish(registered.filter((other) => other !== group));
  }, [keys]);
}

/** Returns all shortcuts that hold now. */
export function useRegisteredShortcuts(): Shortcut[] {
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return useSyncExternalStore(subscribe, () => registered).flat();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Runs the shortcut of a pressed key. Keys in fields and in dialogs are left to them, except Esc, which leaves a field. */
export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  if (document.querySelector("dialog[open]") !== null) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const onControl = event.target instanceof HTMLElement && event.target.closest("a, button, summary") !== null;
  if (event.key === "Enter" && onControl) return;
  const found = registered.flat().findLast((shortcut) => shortcut.key === event.key);
  if (found === undefined) return;
  event.preventDefault();
  found.run();
}
