/** Shows the text of an answer: text, and fenced code. Nothing else of Markdown is read, and nothing in it becomes an element. */
import { useMemo } from "react";
import { AgentText } from "../../components/AgentText";

/** Piece of an answer. `language` is what stands behind the fence. */
export type Piece = { kind: "text"; text: string } | { kind: "code"; text: string; language: string };

const OPENING = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;

/** Divides `text`. A fence that is not closed yet reaches to the end, as it does while an answer streams. */
export function splitFences(text: string): Piece[] {
  const pieces: Piece[] = [];
  let lines: string[] = [];
  let fence: { mark: string; language: string } | null = null;
  const end = () => {
    const body = lines.join("\n");
    if (fence !== null) pieces.push({ kind: "code", text: body, language: fence.language });
    else if (body.trim() !== "") pieces.push({ kind: "text", text: body.replace(/^\n+|\s+$/g, "") });
    lines = [];
  };
  for (const line of text.split(/\r?\n/)) {
    const opened: RegExpExecArray | null = fence === null ? OPENING.exec(line) : null;
    if (fence !== null && closes(line, fence.mark)) {
      end();
      fence = null;
    } else if (opened !== null) {
      end();
      fence = { mark: opened[1] ?? "```", language: (opened[2] ?? "").trim() };
    } else {
      lines.push(line);
    }
  }
  end();
  return pieces;
}

function closes(line: string, mark: string): boolean {
  const found = line.trim();
  return /^ {0,3}\S/.test(line) && found.length >= mark.length && [...found].every((char) => char === mark[0]);
}

/** Renders `text`, with its code in frames. */
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
