/** Answer of a run: as it is written, and then as it is stored. */
import { useEffect, useRef } from "react";
import { announce } from "../../../base/announce";
import { Link } from "../../../base/router";
import { AgentText } from "../../../components/AgentText";
import { EmptyState } from "../../../components/Notes";
import { isActive } from "../figures";
import type { RunDetails } from "./useRun";

const SPOKEN_CHARS = 300;

/** Renders the answer; `answer` is what has been streamed so far. */
export function Answer({ run, answer }: { run: RunDetails; answer: string }) {
  const active = isActive(run);
  useSpoken(active ? answer : "");
  const text = active ? answer : run.answer;
  if (text !== null && text !== "") {
    return (
      <section className={`panel prose${active ? " is-live" : ""}`} aria-label="Answer" aria-busy={active}>
        <AgentText text={text} cutBytes={run.answerCutBytes} />
        {active && <span className="caret" aria-hidden="true" />}
      </section>
    );
  }
  if (active) {
    return (
      <EmptyState title="No answer yet">
        The run is {run.state}. Text appears here while the agent writes it; its <Link to="?tab=events">events</Link> come at once.
      </EmptyState>
    );
  }
  if (run.state === "succeeded") {
    return <EmptyState title="The answer is empty, or no longer kept">Its usage and receipts stay.</EmptyState>;
  }
  return (
    <EmptyState title="There is no answer">
      The run {run.state === "cancelled" ? "was cancelled" : "failed"}. Its <Link to="?tab=events">events</Link> and the agent’s{" "}
      <Link to="?tab=output">output</Link> say how far it came.
    </EmptyState>
  );
}

/** Has new text read aloud by those who hear the page; `announce` keeps to one text in two seconds. */
function useSpoken(answer: string): void {
  const said = useRef(answer.length);
  useEffect(() => {
    if (answer.length < said.current) said.current = 0;
    const news = answer.slice(said.current);
    if (news.trim() === "") return;
    const timer = setTimeout(() => {
      announce(news.slice(-SPOKEN_CHARS));
      said.current = answer.length;
    }, 1_000);
    return () => clearTimeout(timer);
  }, [answer]);
}
