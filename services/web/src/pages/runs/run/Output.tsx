/** Output of the agent's process, as text. */
import { useMemo, useState } from "react";
import { formatBytes } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { VirtualList } from "../../../components/VirtualList";
import type { OutputPiece } from "./eventLog";
import { Nothing, type Source } from "./Nothing";

type Stream = OutputPiece["stream"];
const MAX_BLOCK = 8_192;
const ROW_PX = 40;
const STREAMS: Stream[] = ["stdout", "stderr"];

/** Renders both streams, or one of them. */
export function Output({ runId, source }: { runId: string; source: Source }) {
  const { version, log: { output } } = source;
  const [shown, setShown] = useState<Stream | "both">("both");
  const blocks = useMemo(() => join(output, shown), [output, version, shown]);
  if (output.length === 0) {
    return <Nothing source={source} title="The agent has written nothing">Some agents write only their answer.</Nothing>;
  }
  return (
    <>
      <div className="bar-line">
        <div className="toggles" role="group" aria-label="Streams">
          {(["both", ...STREAMS] as const).map((stream) => (
            <button key={stream} type="button" className="toggle" aria-pressed={shown === stream} onClick={() => setShown(stream)}>
              {stream}
            </button>
          ))}
        </div>
        {STREAMS.filter((stream) => output.some((piece) => piece.stream === stream)).map((stream) => (
          <button key={stream} type="button" onClick={() => download(runId, stream, output)}>
            Save {stream}
          </button>
        ))}
      </div>
      <VirtualList
        label="Output" items={blocks} keyOf={(block) => block.key} estimate={ROW_PX} follows
        render={({ piece }) => (
          <div className={`output-block output-${piece.stream === "stderr" ? "stderr" : "stdout"}`}>
            {shown === "both" && <span className="output-name"><AgentText text={piece.stream} form="inline" /></span>}
            {piece.missingBytes > 0 ? (
              <p className="cut">{formatBytes(piece.missingBytes)} were left out here.</p>
            ) : (
              <AgentText text={piece.text} />
            )}
          </div>
        )}
      />
    </>
  );
}

interface Block {
  key: string;
  piece: OutputPiece;
}

/** Joins pieces of one stream that follow each other, up to a bound: each block is shown as a whole. */
function join(output: OutputPiece[], shown: Stream | "both"): Block[] {
  const blocks: Block[] = [];
  for (const [index, piece] of output.entries()) {
    if (shown !== "both" && piece.stream !== shown) continue;
    const last = blocks.at(-1);
    const continues = last?.piece.stream === piece.stream && last.piece.missingBytes === 0 && piece.missingBytes === 0;
    if (last !== undefined && continues && last.piece.text.length < MAX_BLOCK) {
      blocks[blocks.length - 1] = { key: last.key, piece: { ...last.piece, text: last.piece.text + piece.text } };
    } else {
      blocks.push({ key: `${shown} ${index}`, piece });
    }
  }
  return blocks;
}

/** Saves the raw text as a file. It is never shown as a document: its type is that of unknown bytes. */
function download(runId: string, stream: Stream, output: OutputPiece[]): void {
  const text = output.filter((piece) => piece.stream === stream).map((piece) => piece.text);
  const url = URL.createObjectURL(new Blob(text, { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${runId.replace(/[^\w.-]/g, "_")}.${stream}.txt`;
  link.click();
  URL.revokeObjectURL(url);
}
