// Rows that come from the server in pages, each found with the cursor of the page before.

const SMALLEST = 100;
const LARGEST = 500;

export class PagedRows {
  rows = [];
  done = false;
  error = null;
  #fetch;
  #tell;
  #expected = 0;
  #cursor = null;
  #wanted = 0;
  #loading = null;
  #generation = 0;

  /**
   * @param fetch Returns a page: (limit, cursor) => Promise<{ rows, cursor, total? }>.
   * @param tell Is called when there are more rows, or an error.
   */
  constructor(fetch, tell) {
    this.#fetch = fetch;
    this.#tell = tell;
  }

  /** How many rows there are as far as that is known, those that were not fetched yet among them. */
  get count() {
    if (this.done) return this.rows.length;
    return Math.max(this.rows.length + 1, this.#expected);
  }

  /** Says how many rows there will be. */
  expect(total) {
    this.#expected = total;
  }

  /** Fetches the first page again. The old rows stay until the new ones are there. */
  restart() {
    this.#generation += 1;
    this.#wanted = SMALLEST;
    this.#cursor = null;
    this.#loading = this.#load(true);
    return this.#loading;
  }

  /** Fetches pages until there are so many rows. */
  need(wanted) {
    this.#wanted = Math.max(this.#wanted, wanted);
    if (this.error || this.done) return Promise.resolve();
    this.#loading ??= this.#load(false);
    return this.#loading;
  }

  /** Repeats the failed request. */
  retry() {
    this.error = null;
    if (this.#cursor === null) return this.restart();
    return this.need(this.#wanted);
  }

  /** Fetches pages until a row is found, and returns its index, or -1. */
  async find(matches) {
    const generation = this.#generation;
    let from = 0;
    while (generation === this.#generation) {
      const found = this.rows.findIndex((row, index) => index >= from && matches(row));
      if (found >= 0) return found;
      if (this.done || this.error) return -1;
      from = this.rows.length;
      await this.need(from + LARGEST);
    }
    return -1;
  }

  /** Adds the new rows of a first page that was fetched again. Returns their number, or -1 if others are missing. */
  merge(newest, key) {
    const known = new Map(this.rows.map((row, index) => [key(row), index]));
    const fresh = newest.findIndex((row) => known.has(key(row)));
    if (fresh < 0 && (this.rows.length || newest.length >= SMALLEST)) return -1;
    const seen = fresh < 0 ? [] : newest.slice(fresh);
    if (seen.some((row, index) => known.get(key(row)) !== index)) return -1;
    const added = newest.slice(0, newest.length - seen.length);
    this.rows.splice(0, seen.length, ...added, ...seen);
    this.#expected += added.length;
    return added.length;
  }

  async #load(anew) {
    const generation = this.#generation;
    let first = anew;
    try {
      while (first || (!this.done && this.rows.length < this.#wanted)) {
        const missing = this.#wanted - (first ? 0 : this.rows.length);
        const page = await this.#fetch(Math.min(LARGEST, Math.max(SMALLEST, missing)), this.#cursor);
        if (generation !== this.#generation) return;
        this.#take(page, first);
        first = false;
      }
    } catch (error) {
      if (generation !== this.#generation) return;
      this.error = error;
      this.#tell();
    } finally {
      if (generation === this.#generation) this.#loading = null;
    }
  }

  #take(page, first) {
    this.rows = first ? page.rows : this.rows.concat(page.rows);
    this.error = null;
    this.#cursor = page.cursor;
    this.done = page.cursor === null;
    if (page.total !== undefined) this.#expected = page.total;
    this.#tell();
  }
}
