/** Asks for a draft by a form, and moves the focus to what was drafted. */
import { type FormEvent, type RefObject, useEffect, useRef, useState } from "react";
import { type ApiError, toApiError } from "../../../api/problem";
import { announce } from "../../../base/announce";

/** Draft that a form asks for. */
export interface Drafting<T> {
  /** The last draft; null before the first. */
  draft: T | null;
  error: ApiError | null;
  isBusy: boolean;
  /** Heading of the draft, which gets the focus. */
  heading: RefObject<HTMLHeadingElement | null>;
  submit: (event: FormEvent) => void;
}

/** Returns the draft that `request` gets; null instead of it while the form is not complete. `describe` announces a draft. */
export function useDraft<T>(request: (() => Promise<T>) | null, describe: (draft: T) => string): Drafting<T> {
  const [draft, setDraft] = useState<T | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (draft !== null) heading.current?.focus();
  }, [draft]);
  const ask = async () => {
    if (request === null) return;
    setBusy(true);
    setError(null);
    try {
      const drafted = await request();
      announce(describe(drafted));
      setDraft(drafted);
    } catch (thrown) {
      setError(toApiError(thrown));
    } finally {
      setBusy(false);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void ask();
  };
  return { draft, error, isBusy, heading, submit };
}
