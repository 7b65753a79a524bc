/** Collects the events of a run as its stream delivers them. Changed in place, because a run may have 100,000 of them. */
import { type EventRow, type RowKind, type RunEvent, toRow } from "./eventRow";

const MAX_MERGED = 8_192;

/** Piece of the output of an agent, or a place where bytes are missing. */
export interface OutputPiece {
  stream: "stdout" | "stderr";
  text: string;
  missingBytes: number;
}

/** Tool call or result that an agent reports. `round` differs for each attempt. */
export interface ToolEvent {
  event: RunEvent & { type: "tool_call" | "tool_result" };
  round: number;
}

/** Log of one run. */
export class EventLog {
  readonly rows: EventRow[] = [];
  readonly output: OutputPiece[] = [];
  readonly statuses: { phase: string; at: string }[] = [];
  readonly ends: string[] = [];
  readonly toolEvents: ToolEvent[] = [];
  /** Text of the answer so far; the final answer replaces it. */
  answer = "";
  lastSeq: number | undefined;
  /** Number of older events that are no longer kept. */
  pruned = 0;
  #round = 0;
  #live = 0;
  #isReconnected = false;
  #hasLiveText = false;
  #lastType = "";

  /** Notes that live text may come again, because the stream was connected anew. */
  reconnected(): void {
    this.#isReconnected = this.#hasLiveText;
  }

  /** Appends `events`. Those that are known already are left out. */
  append(events: RunEvent[]): void {
    for (const event of events) this.#append(event);
  }

  #append(event: RunEvent): void {
    if (event.seq !== undefined) {
      if (this.lastSeq !== undefined && event.seq <= this.lastSeq) return;
      this.lastSeq = event.seq;
    }
    this.#note(event);
    this.#live += 1;
    const row = toRow(event, this.#live);
    const last = this.rows.at(-1);
    if (last !== undefined && this.#continues(last, row, event.type)) {
      this.rows[this.rows.length - 1] = { ...last, text: last.text + row.text };
    } else {
      this.rows.push(row);
    }
    this.#lastType = event.type;
  }

  #continues(last: EventRow, row: EventRow, type: RunEvent["type"]): boolean {
    const isText = type === "text_delta" || type === "progress" || type === "log";
    if (!isText || type !== this.#lastType || last.label !== row.label || last.isLive !== row.isLive) return false;
    return last.text.length < MAX_MERGED;
  }

  #note(event: RunEvent): void {
    switch (event.type) {
      case "status":
        if (event.at !== undefined) this.statuses.push({ phase: event.phase, at: event.at });
        if (event.phase === "preparing") this.answer = "";
        break;
      case "text_delta":
        if (event.live === true && this.#isReconnected) this.answer = "";
        this.#isReconnected = false;
        this.#hasLiveText ||= event.live === true;
        this.answer += event.delta;
        break;
      case "assistant_final":
        this.answer = event.content;
        break;
      case "log":
        this.output.push({ stream: event.stream, text: event.text, missingBytes: 0 });
        break;
      case "log_cut":
        this.output.push({ stream: event.stream, text: "", missingBytes: event.bytes });
        break;
      case "tool_call":
      case "tool_result":
        this.toolEvents.push({ event, round: this.#round });
        break;
      case "pruned":
        this.pruned = event.count;
        break;
      case "done":
      case "error":
        this.#round += 1;
        if (event.at !== undefined) this.ends.push(event.at);
        break;
      default:
    }
  }
}

/** Returns the rows of the chosen kinds (all if none is chosen) that have `find` in them. */
export function filterRows(rows: EventRow[], kinds: RowKind[], find: string): EventRow[] {
  const wanted = find.toLowerCase();
  if (kinds.length === 0 && wanted === "") return rows.slice();
  return rows.filter(
    (row) =>
      (kinds.length === 0 || kinds.includes(row.kind)) &&
      (wanted === "" || row.text.toLowerCase().includes(wanted) || row.label.toLowerCase().includes(wanted)),
  );
}

/** Returns the next failure behind the row with the key `from`, beginning again at the top; null if there is none. */
export function nextFailure(rows: EventRow[], from: string | null): EventRow | null {
  const at = rows.findIndex((row) => row.key === from);
  return rows.find((row, index) => index > at && row.isFailure) ?? rows.find((row) => row.isFailure) ?? null;
}
