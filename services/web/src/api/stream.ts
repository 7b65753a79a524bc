/**
 * Follows a stream of the API. Browsers hold six connections to a server, so a tab holds one stream: a new one ends the one
 * before. It is closed while the tab is hidden, and resumes behind the last event that it had.
 */
import { reportUnauthenticated } from "./client";
import { type ApiError, isAbort, readProblem, unreachable } from "./problem";
import { SseParser } from "./sse";

/** State of a stream, for people who watch it. */
export type StreamState =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "paused" }
  | { kind: "lost"; retryAt: number; error: ApiError }
  | { kind: "ended" }
  | { kind: "refused"; error: ApiError };

/** What a stream is read from, and who hears of it. */
export interface StreamOptions<T> {
  path: string;
  /** Number of the last event that the page already has. */
  after?: number;
  onItems: (items: T[]) => void;
  onState: (state: StreamState) => void;
  /** Returns whether nothing follows `item`. The end of the connection is then the end of the stream. */
  isLast?: (item: T) => boolean;
  /** Called before a stream without numbers is read again, because the page has to list its items anew. */
  onRestart?: () => void;
}

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/** Longest silence of a connection that is in order: the server sends a comment every 15 seconds. */
const MAX_SILENCE_MS = 45_000;
/** Longest wait that a server may ask for. */
const MAX_ASKED_MS = 300_000;
let active: { close(): void } | null = null;

/** Stream that reconnects until it ends, is refused or is closed. */
export class LiveStream<T> {
  readonly #options: StreamOptions<T>;
  #lastId: string | null;
  #abort: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #opened = 0;
  #isOver = false;
  #hadLast = false;

  constructor(options: StreamOptions<T>) {
    this.#options = options;
    this.#lastId = options.after === undefined ? null : String(options.after);
  }

  /** Opens the stream, and ends the one that the tab had before. */
  open(): this {
    if (active !== this) active?.close();
    active = this;
    document.addEventListener("visibilitychange", this.#onVisibility);
    globalThis.addEventListener?.("online", this.#onOnline);
    if (document.hidden) this.#options.onState({ kind: "paused" });
    else void this.#connect();
    return this;
  }

  /** Ends the stream. Nothing is called after this. */
  close(): void {
    this.#isOver = true;
    this.#stop();
    document.removeEventListener("visibilitychange", this.#onVisibility);
    globalThis.removeEventListener?.("online", this.#onOnline);
    if (active === this) active = null;
  }

  /** Connects now, without waiting for the next attempt. */
  retryNow(): void {
    if (this.#isOver) return;
    this.#stop();
    void this.#connect();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    this.#abort?.abort();
    this.#abort = null;
  }

  /** Gives up a connection that stays silent from now on. */
  #watch(): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.#stop();
      this.#retry(unreachable());
    }, MAX_SILENCE_MS);
  }

  readonly #onVisibility = (): void => {
    if (this.#isOver) return;
    this.#stop();
    if (document.hidden) this.#options.onState({ kind: "paused" });
    else void this.#connect();
  };

  /** A network that is back is used at once. */
  readonly #onOnline = (): void => {
    if (!document.hidden) this.retryNow();
  };

  async #connect(): Promise<void> {
    const abort = new AbortController();
    this.#abort = abort;
    this.#options.onState({ kind: "connecting" });
    this.#watch();
    if (this.#opened > 0 && this.#lastId === null) this.#options.onRestart?.();
    try {
      const state = await this.#read(abort.signal);
      if (abort.signal.aborted) return;
      if (state === null && this.#hadLast) this.#finish({ kind: "ended" });
      else if (state === null) this.#retry(unreachable());
      else this.#finish(state);
    } catch (thrown) {
      if (!isAbort(thrown) && !abort.signal.aborted) this.#retry(unreachable());
    }
  }

  /** Reads one connection to its end. Returns the last state, or null if the connection broke. */
  async #read(signal: AbortSignal): Promise<StreamState | null> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#lastId !== null) headers["last-event-id"] = this.#lastId;
    const response = await fetch(this.#options.path, { headers, signal, credentials: "same-origin", cache: "no-store" });
    if (response.status === 204) return { kind: "ended" };
    if (!response.ok) return this.#refused(await readProblem(response));
    this.#opened += 1;
    this.#options.onState({ kind: "open" });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    for (;;) {
      const piece = await reader?.read();
      if (piece?.value === undefined || signal.aborted) return null;
      this.#failures = 0;
      this.#watch();
      this.#deliver(parser.feed(piece.value));
    }
  }

  #deliver(events: { id: string | null; data: string }[]): void {
    for (const event of events) if (event.id !== null) this.#lastId = event.id;
    const items = events.flatMap((event) => parseItem<T>(event.data));
    const last = items.at(-1);
    if (last === undefined) return;
    this.#hadLast = this.#options.isLast?.(last) ?? false;
    this.#options.onItems(items);
  }

  #refused(error: ApiError): StreamState | null {
    if (error.status === 401) reportUnauthenticated();
    if (!error.isTransient) return { kind: "refused", error };
    this.#retry(error);
    return { kind: "connecting" };
  }

  #finish(state: StreamState): void {
    if (state.kind === "connecting") return;
    this.close();
    this.#options.onState(state);
  }

  #retry(error: ApiError): void {
    clearTimeout(this.#watchdog);
    this.#failures += 1;
    const asked = Math.min(MAX_ASKED_MS, (error.retryAfterSeconds ?? 0) * 1_000);
    const wait = Math.max(asked, Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (this.#failures - 1)));
    this.#options.onState({ kind: "lost", retryAt: Date.now() + wait, error });
    this.#timer = setTimeout(() => void this.#connect(), wait);
  }
}

function parseItem<T>(data: string): T[] {
  try {
    return [JSON.parse(data) as T];
  } catch {
    return [];
  }
}
