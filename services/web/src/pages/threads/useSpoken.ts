/** Reads a growing answer to people who hear the page: what is new, at most every two seconds. */
import { useEffect, useRef } from "react";
import { announce } from "../../base/announce";
import { findMarks } from "../../base/text/marks";

const INTERVAL_MS = 2_000;
const MAX_CHARS = 600;

/** Returns what is to be said of `text`, of which `said` was said. A text that is another one is said from its begin. */
export function nextWords(text: string, said: string): string {
  const rest = text.startsWith(said) ? text.slice(said.length) : text;
  const plain = findMarks(rest).flatMap((piece) => (piece.kind === "text" ? [piece.text] : [])).join("");
  return plain.length > MAX_CHARS ? `${plain.slice(0, MAX_CHARS)} … more text follows` : plain;
}

/** Says `text` as it grows while `phase` is `live`, and the rest with `ending` once that is known. */
export function useSpoken(text: string, phase: "live" | "quiet", ending: string): void {
  const latest = useRef(text);
  const said = useRef("");
  latest.current = text;
  useEffect(() => {
    if (phase === "quiet") return;
    said.current = "";
    const speak = () => {
      // The last word may go on.
      const whole = latest.current.slice(0, latest.current.search(/\S*$/));
      const words = nextWords(whole, said.current);
      said.current = whole;
      if (words.trim() !== "") announce(words);
    };
    const timer = setInterval(speak, INTERVAL_MS);
    return () => clearInterval(timer);
  }, [phase]);
  const isOwed = useRef(false);
  useEffect(() => {
    if (phase === "live") isOwed.current = true;
    else if (isOwed.current && ending !== "") {
      announce(`${nextWords(latest.current, said.current)} ${ending}`.trim());
      isOwed.current = false;
    }
  }, [phase, ending]);
}
