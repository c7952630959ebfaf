// The listing of threads: search, filters, sizes.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { ago, bytes, count, counted, exactTime } from "./format.js";
import { nothing } from "./messages.js";
import { PagedList } from "./paged_list.js";
import { address, currentRoute, go, threadAddress } from "./route.js";

const TYPED_FOR = 200; // milliseconds without a key, after which the typed text is searched
const MINUTE = 60_000;
const COUNTED_FOR = 30_000; // milliseconds for which the number of all threads is only reckoned
const MOST_EARLY = 20;
const STATUSES = ["idle", "busy", "interrupted", "error", "unfinished"];
const SORTS = {
  "-updated": "Last used",
  updated: "Longest unused",
  "-created": "Newest",
  created: "Oldest",
  id: "Id, A–Z",
  "-id": "Id, Z–A",
};

export class Threads {
  #latest = new Latest();
  #asked = null;
  #thread = null;
  #rows;
  #pane;
  #isLoaded = false;
  #early = []; // events from before the first rows came
  #isDue = false; // whether other threads are to be listed than the fetched ones
  #isUnordered = false; // whether rows are in other places than they should be
  #lost = 0; // how many of the threads in the list are gone
  #countedAt = 0;
  #isPointedAt = false;
  #news = new Set(); // ids of threads that are not in the list yet
  #newsButton = button("", { onclick: () => this.#catchUp(true), class: "news", hidden: true });

  constructor(pane) {
    this.#pane = pane;
    this.#rows = new PagedList({
      label: "Threads",
      name: "thread",
      page: (limit, cursor) => this.#page(limit, cursor),
      row,
      open: (thread) => go(threadAddress(thread.id)),
      empty: () => this.#empty(),
      shown: () => this.#shown(),
    });
    this.pages = this.#rows.pages;
    this.list = this.#rows.list;
    this.#filters = filters();
    pane.append(
      el("header.pane-head", {}, el("h1", {}, "Threads"), this.#rows.total, ...this.#filters.elements),
      el("div.news-place", {}, this.#newsButton),
      this.list.element,
      this.#rows.place,
    );
    const { element } = this.list;
    const point = (isPointedAt) => (event) => {
      this.#isPointedAt = isPointedAt && event.pointerType === "mouse";
      this.#catchUp();
    };
    element.addEventListener("pointerenter", point(true));
    element.addEventListener("pointerleave", point(false));
    element.addEventListener("blur", () => this.#catchUp());
    element.addEventListener("scroll", () => element.scrollTop || this.#catchUp(), { passive: true });
    setInterval(() => document.hidden || this.list.redrawAll(), MINUTE); // "5 min ago" goes on
  }

  #filters;

  /** Shows the threads of a route. */
  show(route) {
    this.#thread = route.thread ?? null;
    const asked = {
      text: route.text,
      status: route.status,
      owner: route.owner,
      metadata: route.metadata,
      sort: route.sort,
    };
    this.#filters.set(asked);
    if (JSON.stringify(asked) !== JSON.stringify(this.#asked)) {
      this.#asked = asked;
      this.#countedAt = 0;
      this.#settle();
      this.#newsButton.hidden = true;
      this.#rows.restart();
    } else this.#select();
  }

  /** Whether the list is on the screen. */
  get isSeen() {
    return this.#pane.checkVisibility();
  }

  /** Takes over the changes: threads as they are now, and the ids of threads that are gone. Rows stay in their
   *  places while you point at the list, move through it with keys, or have scrolled in it. */
  take({ threads, gone }) {
    if (!this.#isLoaded) {
      this.#early = [...this.#early, { threads, gone }].slice(-MOST_EARLY);
      return;
    }
    const places = new Map(this.pages.rows.map((row, index) => [row.id, index]));
    for (const thread of threads) this.#takeOne(thread, places.get(thread.id));
    const lost = gone.filter((id) => places.has(id)).length;
    if (lost) this.#isDue = true;
    this.#lost += lost;
    this.#catchUp();
  }

  #takeOne(thread, index) {
    const fits = matches(thread, this.#asked);
    if (index === undefined) {
      if (!fits || this.#isBeyond(thread)) return;
      this.#isDue = true;
      if (!this.#asked.metadata) this.#news.add(thread.id); // whether its metadata fit, the server knows
      return;
    }
    const row = this.pages.rows[index];
    const now = { ...thread, metadata: row.metadata };
    if (JSON.stringify(now) === JSON.stringify(row)) return;
    this.pages.rows[index] = now;
    this.list.redraw(index);
    const order = compare(this.#asked.sort);
    const isInPlace = index === 0 || order(this.pages.rows[index - 1], now) <= 0;
    const next = this.pages.rows[index + 1];
    if (!fits) this.#isDue = true;
    else if (!isInPlace || (next && order(now, next) > 0)) this.#isUnordered = true;
  }

  /** Whether a thread comes after those that were fetched. */
  #isBeyond(thread) {
    const last = this.pages.rows.at(-1);
    return !this.pages.done && last !== undefined && compare(this.#asked.sort)(thread, last) > 0;
  }

  /** Brings the list into its order, with the new rows, unless that would move rows that you look at. */
  #catchUp(isWanted = false) {
    const { element } = this.list;
    const isHeld = element.scrollTop > 0 || this.#isPointedAt || element.matches(":focus-visible");
    if (isWanted) element.scrollTop = 0;
    if (isWanted || !isHeld) {
      if (this.#isDue) this.#fetchAgain();
      else if (this.#isUnordered) this.#sort();
    }
    this.#newsButton.hidden = !this.#news.size;
    this.#newsButton.textContent = `Show ${counted(this.#news.size, "new thread")}`;
  }

  #fetchAgain() {
    this.pages.expect(this.pages.count + this.#news.size - this.#lost);
    this.#settle();
    this.pages.restart();
  }

  // A row that has moved up is not among those that were not fetched yet; one that has moved down may be.
  #sort() {
    const { sort = "-updated" } = this.#asked;
    if (!this.pages.done && !sort.startsWith("-")) return this.#fetchAgain();
    this.#settle();
    this.pages.rows.sort(compare(sort));
    this.#rows.show();
  }

  #settle() {
    this.#isDue = false;
    this.#isUnordered = false;
    this.#lost = 0;
    this.#news.clear();
  }

  /** Puts the cursor into the search. */
  search() {
    this.#filters.focus();
  }

  async #page(limit, cursor) {
    const now = Date.now();
    const isDue = cursor === null && now - this.#countedAt > COUNTED_FOR;
    if (isDue) this.#countedAt = now;
    const page = await this.#latest.get("threads", { ...this.#asked, limit, cursor, count: isDue ? 1 : null });
    return { rows: page.threads, cursor: page.cursor, total: page.total };
  }

  #shown() {
    this.#select();
    this.#isLoaded ||= this.pages.done || this.pages.rows.length > 0;
    if (this.#isLoaded) for (const each of this.#early.splice(0)) this.take(each);
  }

  #select() {
    this.#rows.select((each) => each.id === this.#thread);
  }

  #empty() {
    if (Object.values(this.#asked).every((value, index) => value === undefined || index === 4)) {
      return nothing(
        "No threads yet",
        "You see a thread here as soon as your graph stores a checkpoint in this database.",
      );
    }
    const clear = button("Show all threads", { onclick: () => go(address({ sort: this.#asked.sort })) });
    return el(
      "div",
      {},
      nothing(
        "No thread matches",
        "Change the search or the filters. The search ignores case in titles, but not in ids.",
      ),
      clear,
    );
  }
}

function row(thread) {
  if (!thread) return [el("span.skeleton")];
  const name = thread.title ?? thread.id;
  return [
    el(
      "span.row-line",
      {},
      el("span.status", { "data-status": thread.status, title: thread.status }),
      el("span.row-title", { title: name }, name || "(empty id)"),
      el("time.faint", { datetime: thread.updated_at, title: `Last used ${exactTime(thread.updated_at)}` }, ago(thread.updated_at)),
    ),
    el(
      "span.row-line.faint",
      {},
      thread.status !== "idle" && el("span.word", { "data-status": thread.status, title: nextNodes(thread) }, thread.status),
      thread.title !== null && el("span.row-id", { title: thread.id }, thread.id),
      thread.problems.length > 0 && el("span.row-id", { title: thread.problems[0].problem }, "damaged"),
      thread.owner !== null && el("span.row-owner", { title: "Owner" }, thread.owner),
      el("span.push", { title: counted(thread.checkpoints, "checkpoint") }, count(thread.checkpoints), el("span.unit", {}, " cp")),
      el("span.size", {}, bytes(thread.size_bytes)),
    ),
  ];
}

/** The nodes that are still to run, for a tooltip. */
function nextNodes({ status, next }) {
  return next.length > 0 ? `Next: ${next.join(", ")}` : status;
}

/** Whether a thread is one of those that are asked for, as far as its row tells. */
function matches({ id, title, status, owner }, asked) {
  if (asked.status && status !== asked.status) return false;
  if (asked.owner && owner !== asked.owner) return false;
  if (!asked.text) return true;
  return id.includes(asked.text) || (title ?? "").toLowerCase().includes(asked.text.toLowerCase());
}

/** Returns a function that compares two threads by an order. */
function compare(sort = "-updated") {
  const isDown = sort.startsWith("-");
  const name = isDown ? sort.slice(1) : sort;
  const value = (thread) => (name === "id" ? thread.id : Date.parse(thread[`${name}_at`]));
  return (one, other) => {
    const [first, second] = isDown ? [value(other), value(one)] : [value(one), value(other)];
    return first < second ? -1 : first > second ? 1 : 0;
  };
}

function filters() {
  const text = el("input", {
    type: "search",
    placeholder: "Search titles and ids",
    "aria-label": "Search threads",
    spellcheck: "false",
  });
  const status = chooser("Status", {
    "": "Any status",
    ...Object.fromEntries(STATUSES.map((name) => [name, name])),
  });
  const sort = chooser("Order", SORTS);
  const owner = el("input", { type: "text", placeholder: "Owner", "aria-label": "Owner", spellcheck: "false" });
  const metadata = el("input.code", {
    type: "text",
    placeholder: '{"airport": "VIE"}',
    "aria-label": "Metadata, as JSON",
    spellcheck: "false",
  });
  const more = el("details.more", {}, el("summary", {}, "More filters"), el("div.fields", {}, owner, metadata));
  const fields = { text, status, owner, metadata, sort };
  let timer = 0;
  for (const field of [text, owner, metadata]) {
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => apply(fields), TYPED_FOR);
    });
  }
  for (const field of [status, sort]) field.addEventListener("change", () => apply(fields));
  metadata.addEventListener("input", () =>
    metadata.setCustomValidity(isObject(metadata.value) ? "" : "Enter a JSON object"),
  );
  return {
    elements: [text, el("div.fields", {}, status, sort), more],
    focus: () => text.select(),
    set(values) {
      for (const [name, field] of Object.entries(fields)) {
        const value = values[name] ?? (name === "sort" ? "-updated" : "");
        if (field !== document.activeElement) field.value = value;
      }
      if (values.owner || values.metadata) more.open = true;
    },
  };
}

function apply(fields) {
  if (!isObject(fields.metadata.value)) return;
  const values = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value || null]));
  if (values.sort === "-updated") values.sort = null;
  go(address({ ...currentRoute(), ...values }), { replace: true });
}

function isObject(text) {
  if (!text) return true;
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

function chooser(label, choices) {
  const options = Object.entries(choices).map(([value, name]) => el("option", { value }, name));
  return el("select", { "aria-label": label }, ...options);
}
