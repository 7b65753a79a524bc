// Splits an agent's output into lines. A line has a limit, because the agent's program chooses its length.

const MAX_LINE_BYTES = 16 << 20;

// Calls `onLine` with each line of a stream, without its end. A longer line than `maxBytes` is dropped.
export function splitLines(stream, onLine, maxBytes = MAX_LINE_BYTES) {
  let pieces = [];
  let bytes = 0;
  const end = () => {
    if (bytes > 0 && bytes <= maxBytes) onLine(Buffer.concat(pieces).toString("utf8"));
    pieces = [];
    bytes = 0;
  };
  const add = (piece) => {
    bytes += piece.length;
    if (bytes <= maxBytes) pieces.push(piece);
    else pieces = [];
  };
  stream.on("data", (chunk) => {
    let start = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, at));
      end();
      start = at + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  });
  stream.on("end", end);
}

// Captures the last `maxBytes` of a stream. Returns a function that returns them as text.
export function captureTail(stream, maxBytes, onChunk) {
  let tail = Buffer.alloc(0);
  stream.on("data", (chunk) => {
    onChunk?.(chunk);
    tail = Buffer.concat([tail, chunk]);
    if (tail.length > 2 * maxBytes) tail = tail.subarray(tail.length - maxBytes);
  });
  return () => tail.subarray(Math.max(0, tail.length - maxBytes)).toString("utf8");
}
