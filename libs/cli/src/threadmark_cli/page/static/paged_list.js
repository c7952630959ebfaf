// A list whose rows come in pages, with their number above it, and a message in its place if there are none.

import { el } from "./dom.js";
import { counted } from "./format.js";
import { failure } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { VirtualList } from "./virtual_list.js";

const ROW_HEIGHT = 66;

export class PagedList {
  total = el("p.total", { role: "status" });
  place = el("div.place");
  #what;

  /**
   * @param what.label The name of the list for screen readers.
   * @param what.name The name of a row, such as "thread".
   * @param what.page Returns a page: (limit, cursor) => Promise<{ rows, cursor, total? }>.
   * @param what.row Returns the parts of a row, or of its place if it was not fetched yet.
   * @param what.open Is called with the row that you choose.
   * @param what.empty Returns what stands in the place of a list without rows.
   * @param what.shown Is called when the rows are on the screen.
   */
  constructor(what) {
    this.#what = what;
    this.pages = new PagedRows(what.page, () => this.show());
    this.list = new VirtualList({
      label: what.label,
      name: `${what.name}s`,
      rowHeight: ROW_HEIGHT,
      draw: (index) => what.row(this.pages.rows[index]),
      open: (index) => this.pages.rows[index] && what.open(this.pages.rows[index]),
      need: (end) => this.pages.need(end),
    });
    this.element = this.list.element;
  }

  /** Fetches other rows, and shows the first ones. */
  restart() {
    this.element.scrollTop = 0;
    this.pages.restart();
  }

  /** Marks the row that meets a condition as the chosen one. */
  select(matches) {
    this.list.select(this.pages.rows.findIndex(matches));
  }

  /** Shows the rows as they are. */
  show() {
    const { rows, done, error } = this.pages;
    this.place.replaceChildren();
    this.element.hidden = !rows.length;
    if (error) this.place.append(failure(error, () => this.pages.retry()));
    else if (done && !rows.length) this.place.append(this.#what.empty());
    this.total.textContent = rows.length ? counted(this.pages.count, this.#what.name) : "";
    this.list.setCount(this.pages.count);
    this.#what.shown();
  }
}
