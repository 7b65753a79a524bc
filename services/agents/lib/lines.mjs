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

// Creates a filter that drops whole lines which are exactly one of `lines`, and passes all other bytes on. Only the beginning of
// such a line waits for its rest.
export function createLineFilter(lines) {
  // Latin-1 has one character for each byte, so no piece is cut within a character.
  const hidden = lines.map((line) => Buffer.from(`${line}\n`).toString("latin1"));
  let held = "";
  let isLineStart = true;
  const add = (chunk) => {
    let rest = held + chunk.toString("latin1");
    let passed = "";
    held = "";
    while (rest !== "") {
      const line = isLineStart ? hidden.find((known) => rest.startsWith(known)) : undefined;
      if (line !== undefined) {
        rest = rest.slice(line.length);
      } else if (isLineStart && hidden.some((known) => known.startsWith(rest))) {
        held = rest;
        rest = "";
      } else {
        const end = rest.indexOf("\n") + 1 || rest.length;
        passed += rest.slice(0, end);
        isLineStart = rest[end - 1] === "\n";
        rest = rest.slice(end);
      }
    }
    return Buffer.from(passed, "latin1");
  };
  return { add, end: () => Buffer.from(held, "latin1") };
}

// Captures the last `maxBytes` of a stream without the lines `hidden`. Returns a function that returns them as text.
export function captureTail(stream, maxBytes, onChunk, hidden = []) {
  const filter = createLineFilter(hidden);
  let tail = Buffer.alloc(0);
  const keep = (chunk) => {
    if (chunk.length === 0) return;
    onChunk?.(chunk);
    tail = Buffer.concat([tail, chunk]);
    if (tail.length > 2 * maxBytes) tail = tail.subarray(tail.length - maxBytes);
  };
  stream.on("data", (chunk) => keep(filter.add(chunk)));
  stream.on("end", () => keep(filter.end()));
  return () => tail.subarray(Math.max(0, tail.length - maxBytes)).toString("utf8");
}
