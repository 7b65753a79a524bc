/** Collects what an agent writes on its way to the answer. Of this, the end is kept, and it is published in batches. */
import { field, numberField, textField } from "./message";

/** Text so far, and the number of pieces that were missed. */
export interface Progress {
  text: string;
  missed: number;
}

const BATCH_MS = 100;
const MAX_CHARS = 2_000;

/** Collector of one conversation. */
export class ProgressText {
  readonly #publish: (progress: Progress) => void;
  #current: Progress = { text: "", missed: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(publish: (progress: Progress) => void) {
    this.#publish = publish;
  }

  /** Reads a data part of the stream. Others than progress are left alone. */
  read(part: { type: string }): void {
    const data = field(part, "data");
    if (part.type === "data-progress") this.#change({ text: this.#current.text + (textField(data, "text") ?? "") });
    if (part.type === "data-missed") this.#change({ missed: this.#current.missed + (numberField(data, "count") ?? 0) });
  }

  /** Forgets everything: another answer begins, or the same from its beginning. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#current = { text: "", missed: 0 };
    this.#publish(this.#current);
  }

  #change(change: Partial<Progress>): void {
    this.#current = { ...this.#current, ...change };
    this.#current.text = this.#current.text.slice(-MAX_CHARS);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#publish(this.#current);
    }, BATCH_MS);
  }
}
