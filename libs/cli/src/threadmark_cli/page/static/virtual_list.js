// A list of any length that draws only the rows that are seen, and is moved through by keys.
//
// All rows are equally high, so that the place of each is known without drawing it.

import { el } from "./dom.js";

const BEYOND = 8; // so many rows are drawn above and below those that are seen
let lists = 0;

export class VirtualList {
  #space = el("div.list-space", { role: "presentation" });
  #drawn = new Map();
  #id = `list-${(lists += 1)}`;
  #count = 0;
  #cursor = -1;
  #selected = -1;
  #draw;
  #open;
  #need;
  #rowHeight;
  #frame = 0;

  /**
   * @param {string} label The name of the list.
   * @param {number} rowHeight In pixels; the style sheet must agree.
   * @param {(index: number) => Node[]} draw Returns the content of a row.
   * @param {(index: number) => void} open The action of Enter and of a click.
   * @param {(end: number) => void} need Gets the end of the visible rows, so that they can be fetched.
   */
  constructor({ label, rowHeight, draw, open, need = () => {}, name = "" }) {
    this.#draw = draw;
    this.#open = open;
    this.#need = need;
    this.#rowHeight = rowHeight;
    this.element = el(
      "div.list",
      { role: "listbox", tabindex: "0", "aria-label": label, "data-list": name },
      this.#space,
    );
    this.element.addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focus", () => this.#focused());
    this.#space.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#drawSoon()).observe(this.element);
  }

  /** Redraws the visible rows of so many. */
  setCount(count) {
    this.#count = count;
    this.#cursor = Math.min(this.#cursor, count - 1);
    this.#space.style.height = `${count * this.#rowHeight}px`;
    this.#forget();
    this.#drawSeen();
  }

  /** Redraws one row, if it is visible. */
  redraw(index) {
    this.#drawn.get(index)?.replaceChildren(...this.#draw(index));
  }

  /** Redraws the visible rows. */
  redrawAll() {
    for (const index of this.#drawn.keys()) this.redraw(index);
  }

  /** Keeps the visible rows in their place while so many rows are added before the first. */
  prepended(rows) {
    if (this.#cursor >= 0) this.#cursor += rows;
    if (this.#selected >= 0) this.#selected += rows;
    const top = this.element.scrollTop;
    this.setCount(this.#count + rows);
    if (top > 0) this.element.scrollTop = top + rows * this.#rowHeight;
  }

  /** Marks a row as the open one; -1 for none. */
  select(index) {
    if (index === this.#selected) return;
    this.#selected = index;
    if (index >= 0) this.#cursor = index;
    this.#mark();
  }

  /** Scrolls as far as needed to see a row. */
  reveal(index) {
    const top = index * this.#rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = Math.max(0, top - this.#rowHeight);
    else if (top + this.#rowHeight > scrollTop + clientHeight) {
      this.element.scrollTop = top - clientHeight + 2 * this.#rowHeight;
    }
    this.#drawSeen();
  }

  /** Moves the cursor by so many rows. */
  move(by) {
    if (!this.#count) return;
    const from = this.#cursor < 0 ? (by > 0 ? -1 : this.#count) : this.#cursor;
    this.#cursor = Math.max(0, Math.min(this.#count - 1, from + by));
    this.reveal(this.#cursor);
    this.#mark();
  }

  #focused() {
    if (this.#cursor < 0 && this.#count) this.#cursor = Math.floor(this.element.scrollTop / this.#rowHeight);
    this.#mark();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.#rowHeight) - 1);
    const moves = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.#count,
      End: this.#count,
    };
    if (event.key in moves) this.move(moves[event.key]);
    else if (event.key === "Enter" && this.#cursor >= 0) this.#open(this.#cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // By the place, because the row may have been redrawn while the button was down.
  #click(event) {
    const place = event.clientY - this.#space.getBoundingClientRect().top;
    const index = Number(event.target.closest(".row")?.dataset.index ?? Math.floor(place / this.#rowHeight));
    if (index >= this.#count) return;
    this.#cursor = index;
    this.#mark();
    this.#open(this.#cursor);
  }

  #drawSoon() {
    this.#frame ||= requestAnimationFrame(() => this.#drawSeen());
  }

  #drawSeen() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.#rowHeight) - BEYOND);
    const end = Math.min(this.#count, Math.ceil((scrollTop + clientHeight) / this.#rowHeight) + BEYOND);
    for (const [index, row] of this.#drawn) {
      if (index < first || index >= end) {
        row.remove();
        this.#drawn.delete(index);
      }
    }
    for (let index = first; index < end; index += 1) {
      if (!this.#drawn.has(index)) this.#space.append(this.#row(index));
    }
    this.#mark();
    if (end > first) this.#need(end);
  }

  #row(index) {
    const place = { "aria-posinset": index + 1, "aria-setsize": this.#count, "data-index": index };
    const row = el("div.row", { role: "option", id: `${this.#id}-${index}`, ...place }, ...this.#draw(index));
    row.style.transform = `translateY(${index * this.#rowHeight}px)`;
    this.#drawn.set(index, row);
    return row;
  }

  #mark() {
    for (const [index, row] of this.#drawn) {
      row.classList.toggle("cursor", index === this.#cursor);
      row.setAttribute("aria-selected", String(index === this.#selected));
    }
    if (this.#drawn.has(this.#cursor))
      this.element.setAttribute("aria-activedescendant", `${this.#id}-${this.#cursor}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #forget() {
    this.#space.replaceChildren();
    this.#drawn.clear();
  }
}
