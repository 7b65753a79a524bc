/** Shows the text of an answer: text, and fenced code. Nothing in it becomes an element. */
import { useMemo } from "react";
import { AgentText } from "../../components/AgentText";
import { splitFences } from "./fences";

/** Renders `text`. */
export function AnswerText({ text }: { text: string }) {
  const pieces = useMemo(() => splitFences(text), [text]);
  return pieces.map((piece, index) =>
    piece.kind === "text" ? (
      <div key={index} className="chat-prose">
        <AgentText text={piece.text} />
      </div>
    ) : (
      <figure key={index} className="chat-code">
        {piece.language !== "" && (
          <figcaption>
            <AgentText text={piece.language} form="inline" />
          </figcaption>
        )}
        <div className="chat-code-body" tabIndex={0} role="group" aria-label="Code">
          <AgentText text={piece.text} />
        </div>
      </figure>
    ),
  );
}
