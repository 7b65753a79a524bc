/** Counts failures in a row, and says how long to wait before the next attempt. */

const FIRST_MS = 1_000;
const MAX_MS = 30_000;
/** A connection that lasted this long was not a failure to connect. */
const STEADY_MS = 5_000;

/** Waits that double up to a bound. */
export class Backoff {
  #failures = 0;

  /** Returns the wait after a connection that began at `answeredAt`, which is null if there was none. */
  next(answeredAt: number | null, now: number): number {
    if (answeredAt !== null && now - answeredAt >= STEADY_MS) this.#failures = 0;
    this.#failures += 1;
    return Math.min(MAX_MS, FIRST_MS * 2 ** (this.#failures - 1));
  }

  /** Forgets all failures. */
  reset(): void {
    this.#failures = 0;
  }
}
