/** Parses server-sent events from pieces of text, as the HTML standard describes them. */

/** One event of a stream: its data, and its id if it has one. */
export interface ServerEvent {
  id: string | null;
  data: string;
}

/** Parser of one stream. A line may begin in one piece and end in another. */
export class SseParser {
  #rest = "";
  #id: string | null = null;
  #data: string[] = [];

  /** Returns the events that `piece` completes. */
  feed(piece: string): ServerEvent[] {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#read(line));
  }

  #read(line: string): ServerEvent[] {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return [];
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    if (name === "id" && !value.includes("\0")) this.#id = value;
    return [];
  }

  #dispatch(): ServerEvent[] {
    const event = { id: this.#id, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#data = [];
    this.#id = null;
    return isEmpty ? [] : [event];
  }
}
