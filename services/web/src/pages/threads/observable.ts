/** Holds a value that components watch. */

/** Value with listeners. */
export class Observable<T extends object> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** Calls `listener` when the value changes. Returns what ends this. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Returns the value, which is another object whenever it has changed. */
  readonly get = (): T => this.#value;

  /** Replaces fields of the value. */
  update(change: Partial<T>): void {
    this.#value = { ...this.#value, ...change };
    for (const listener of this.#listeners) listener();
  }
}
