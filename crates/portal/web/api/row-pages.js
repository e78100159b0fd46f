// Rows of a long answer as pages, of which only those near the eye are kept: each knows the continuation that it was read with, so one
// that was let go is read again when somebody scrolls back. A million rows can be passed with the memory of some thousands.

/** Rows of the first page, which somebody waits for, and of the others. */
const FIRST_ROWS = 200, PAGE_ROWS = 1000;
/** Pages that are kept: more than any screen shows, little enough for any machine. */
const PAGES_KEPT_MAX = 40;

/** @typedef {{token: string, count: number, rows: any[] | null, used: number, loading: Promise<void> | null}} Page */

export class RowPages {
  /**
   * @param {(continuation: string, count: number, signal: AbortSignal) => Promise<{rows: any[], next: string, charge: number}>} ask
   * @param {(error?: any) => void} onChange
   */
  constructor(ask, onChange) {
    this.ask = ask;
    this.onChange = onChange;
    /** @type {Page[]} */
    this.pages = [];
    /** Where the next page begins; null when there is none. @type {string | null} */
    this.next = "";
    this.length = 0;
    this.charge = 0;
    this.clock = 0;
    this.controller = new AbortController();
    /** @type {Promise<void> | null} */
    this.more = null;
  }

  get done() {
    return this.next === null;
  }

  stop() {
    this.controller.abort();
  }

  /** Reads one page more. */
  loadMore() {
    if (this.next === null || this.more) return this.more ?? Promise.resolve();
    const token = this.next;
    return (this.more = (async () => {
      try {
        const answer = await this.ask(token, this.pages.length ? PAGE_ROWS : FIRST_ROWS, this.controller.signal);
        this.charge += answer.charge;
        this.next = answer.next || null;
        if (answer.rows.length || this.pages.length === 0) this.pages.push({ token, count: answer.rows.length, rows: answer.rows, used: ++this.clock, loading: null });
        this.length += answer.rows.length;
        this.letGo();
        this.onChange();
      } catch (error) {
        if (this.controller.signal.aborted) return;
        this.next = null;
        this.onChange(error);
      } finally {
        this.more = null;
      }
    })());
  }

  /** The page of a row and where it begins. @param {number} at @returns {[Page, number, number] | null} */
  find(at) {
    let start = 0;
    for (let n = 0; n < this.pages.length; n += 1) {
      const page = this.pages[n];
      if (at < start + page.count) return [page, start, n];
      start += page.count;
    }
    return null;
  }

  /** A row; undefined while its page is read again. @param {number} at */
  at(at) {
    const found = this.find(at);
    if (!found) return undefined;
    const [page, start] = found;
    page.used = ++this.clock;
    if (!page.rows) this.reload(page);
    return page.rows?.[at - start];
  }

  /** @param {Page} page */
  reload(page) {
    return (page.loading ??= (async () => {
      try {
        const answer = await this.ask(page.token, page === this.pages[0] ? FIRST_ROWS : PAGE_ROWS, this.controller.signal);
        this.charge += answer.charge;
        this.length += answer.rows.length - page.count;
        Object.assign(page, { rows: answer.rows, count: answer.rows.length });
        this.letGo();
        this.onChange();
      } catch (error) {
        if (!this.controller.signal.aborted) this.onChange(error);
      } finally {
        page.loading = null;
      }
    })());
  }

  /** A row, read again if it must be. @param {number} at */
  async read(at) {
    const found = this.find(at);
    if (found && !found[0].rows) await this.reload(found[0]);
    return this.at(at);
  }

  letGo() {
    const kept = this.pages.filter((page) => page.rows).sort((a, b) => a.used - b.used);
    for (const page of kept.slice(0, Math.max(0, kept.length - PAGES_KEPT_MAX))) page.rows = null;
  }

  /** @param {number} at @param {any} row */
  replace(at, row) {
    const found = this.find(at);
    if (found?.[0].rows) found[0].rows[at - found[1]] = row;
    this.onChange();
  }

  /** Puts a row in front of all others. @param {any} row */
  unshift(row) {
    if (this.pages.length === 0) this.pages.push({ token: "", count: 0, rows: [], used: ++this.clock, loading: null });
    const first = this.pages[0];
    if (first.rows) (first.rows = [row, ...first.rows]), (first.count += 1), (this.length += 1);
    this.onChange();
  }

  /** Takes rows out, by their places. @param {Iterable<number>} places */
  remove(places) {
    for (const at of [...places].sort((a, b) => b - a)) {
      const found = this.find(at);
      if (!found) continue;
      const [page, start] = found;
      page.rows?.splice(at - start, 1);
      page.count -= 1;
      this.length -= 1;
    }
    this.onChange();
  }

  /** The rows that are at hand. */
  loaded() {
    return this.pages.flatMap((page) => page.rows ?? []);
  }

  /** The first rows that are at hand, to learn their columns from. */
  sample() {
    return this.pages.find((page) => page.rows?.length)?.rows?.slice(0, 200) ?? [];
  }
}
