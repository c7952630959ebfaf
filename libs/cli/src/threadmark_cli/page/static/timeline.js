// The checkpoints of a thread, newest first, as a list that is fetched in pages.

import { Latest } from "./api.js";
import { el } from "./dom.js";
import { entryKey, factsLine, stepLine } from "./entries.js";
import { count } from "./format.js";
import { failure, nothing } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { checkpointAddress, go } from "./route.js";
import { VirtualList } from "./virtual_list.js";

const FRESH_FOR = 2500; // milliseconds for which a row that came while one looked is marked

export class Timeline {
  #latest = new Latest();
  #again = new Latest();
  #fresh = new Map();
  #parents = new Set(); // the checkpoints that another one follows
  #place = el("div.place");
  #sought = el("p.total", { role: "status" });
  #seeking = null;
  #thread;
  #ns;
  #total;
  #newest;

  /** `newest` is asked for the key of the checkpoint that is open if the route names none. */
  constructor({ thread, ns, total, newest }) {
    this.#thread = thread;
    this.#ns = ns;
    this.#total = total;
    this.#newest = newest;
    this.pages = new PagedRows(
      (limit, cursor) => this.#page(limit, cursor),
      () => this.#shown(),
    );
    if (ns === null) this.pages.expect(total);
    this.list = new VirtualList({
      label: "Checkpoints, newest first",
      name: "checkpoints",
      rowHeight: 58,
      draw: (index) => this.#row(this.pages.rows[index]),
      open: (index) => this.#open(index),
      need: (end) => this.pages.need(end),
    });
    this.element = el("div.view", {}, this.#sought, this.list.element, this.#place);
    this.pages.restart();
  }

  /** Marks the checkpoint that a route names, and fetches as far as to it. */
  show(route) {
    const key = "at" in route ? entryKey({ ns: route.ns ?? "", id: route.at }) : null;
    if (key === this.#seeking && key !== null) return;
    this.#seeking = key;
    this.#seek(key, true);
  }

  /** Fetches new rows. */
  async refresh(total) {
    const isPruned = total < this.#total;
    this.#total = total;
    if (!isPruned && (await this.#addNewest())) return;
    this.pages.expect(this.#ns === null ? total : 0);
    await this.pages.restart();
  }

  close() {
    this.#latest.cancel();
    this.#again.cancel();
  }

  async #seek(key, reveal) {
    const wanted = key ?? this.#newest();
    const isWanted = (row) => entryKey(row) === wanted;
    let index = this.pages.rows.findIndex(isWanted);
    if (index < 0 && key !== null) {
      if (this.pages.rows.length) await this.#addNewest().catch(() => {}); // it may have been stored just now
      index = await this.pages.find(isWanted);
      if (key !== this.#seeking) return;
    }
    this.list.select(index);
    if (index >= 0 && reveal) this.list.reveal(index);
    this.#tellSought();
  }

  /** Adds rows stored since the first page was fetched. Returns whether that was all. */
  async #addNewest() {
    const page = await this.#page(100, null, this.#again);
    const added = this.pages.merge(page.rows, entryKey);
    for (const row of page.rows.slice(0, Math.max(0, added))) this.#mark(entryKey(row));
    if (added > 0) this.list.prepended(added);
    if (added >= 0) this.#shown();
    return added >= 0;
  }

  async #page(limit, cursor, asked = this.#latest) {
    const page = await asked.get("history", { thread: this.#thread, ns: this.#ns, limit, cursor });
    if (cursor === null && asked === this.#latest) this.#parents = new Set(); // some may have been removed
    for (const { ns, parent } of page.entries) this.#parents.add(entryKey({ ns, id: parent }));
    return { rows: page.entries, cursor: page.cursor };
  }

  #shown() {
    const { rows, done, error } = this.pages;
    this.#place.replaceChildren();
    this.list.element.hidden = !rows.length;
    if (error) this.#place.append(failure(error, () => this.pages.retry()));
    else if (done && !rows.length) {
      this.#place.append(nothing("No checkpoints yet", "You see them here as soon as your graph stores one."));
    }
    this.list.setCount(this.pages.count);
    if (this.#seeking === null) this.#seek(null, false);
    this.#tellSought();
  }

  #tellSought() {
    const { rows, done } = this.pages;
    const found = this.#seeking === null || rows.some((row) => entryKey(row) === this.#seeking);
    this.#sought.hidden = found || !done;
    this.#sought.textContent = found ? "" : `You do not see the open checkpoint here: it is not among these ${count(rows.length)}.`;
  }

  #row(entry) {
    if (!entry) return [el("span.skeleton")];
    const lines = [stepLine(entry), factsLine(entry, { isOver: this.#parents.has(entryKey(entry)) })];
    return this.#fresh.has(entryKey(entry)) ? [el("span.fresh"), ...lines] : lines;
  }

  #mark(key) {
    this.#fresh.set(key, true);
    setTimeout(() => this.#fresh.delete(key), FRESH_FOR);
  }

  #open(index) {
    const entry = this.pages.rows[index];
    if (entry) go(checkpointAddress(entry.ns, entry.id));
  }
}
