/** Computes where the rows of a virtual list begin. */

/** Offsets of rows with known heights. */
export class Offsets {
  readonly #starts: Float64Array;

  constructor(heights: number[]) {
    this.#starts = new Float64Array(heights.length + 1);
    for (const [index, height] of heights.entries()) this.#starts[index + 1] = (this.#starts[index] ?? 0) + height;
  }

  /** Height of all rows. */
  get total(): number {
    return this.#starts[this.#starts.length - 1] ?? 0;
  }

  /** Returns where the row at `index` begins. */
  at(index: number): number {
    return this.#starts[Math.max(0, Math.min(index, this.#starts.length - 1))] ?? 0;
  }

  /** Returns the first row that reaches into `top..bottom`, and the one behind the last. */
  range(top: number, bottom: number): [number, number] {
    const count = this.#starts.length - 1;
    const first = Math.max(0, this.#search(top) - 1);
    return [first, Math.min(count, this.#search(bottom))];
  }

  /** Returns the number of rows that begin at or before `offset`. */
  #search(offset: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
