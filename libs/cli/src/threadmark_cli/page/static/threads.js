// The listing of threads: search, filters, sizes.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { ago, bytes, count, counted, exactTime } from "./format.js";
import { failure, nothing } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { address, currentRoute, go, threadAddress } from "./route.js";
import { VirtualList } from "./virtual_list.js";

const TYPED_FOR = 200; // milliseconds without a key, after which what was typed is searched
const STATUSES = ["idle", "busy", "interrupted", "error"];
const SORTS = {
  "-updated": "Last used",
  updated: "Least used lately",
  "-created": "Newest",
  created: "Oldest",
  id: "By id",
  "-id": "By id, reversed",
};

export class Threads {
  #latest = new Latest();
  #asked = null;
  #thread = null;
  #total = el("p.total", { role: "status" });
  #place = el("div.place");

  constructor(pane) {
    this.pages = new PagedRows(
      (limit, cursor) => this.#page(limit, cursor),
      () => this.#shown(),
    );
    this.list = new VirtualList({
      label: "Threads",
      name: "threads",
      rowHeight: 66,
      draw: (index) => row(this.pages.rows[index]),
      open: (index) => this.#open(index),
      need: (end) => this.pages.need(end),
    });
    this.#filters = filters();
    pane.append(
      el("header.pane-head", {}, el("h1", {}, "Threads"), this.#total, ...this.#filters.elements),
      this.list.element,
      this.#place,
    );
  }

  #filters;

  /** Shows what a route asks for. */
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
      this.list.element.scrollTop = 0;
      this.pages.restart();
    } else this.#select();
  }

  /** Takes over what a thread is like now. Its place in the order stays. */
  update(thread) {
    const index = this.pages.rows.findIndex((each) => each.id === thread.id);
    if (index < 0) return;
    this.pages.rows[index] = thread;
    this.#shown();
  }

  /** Puts the cursor into the search. */
  search() {
    this.#filters.focus();
  }

  async #page(limit, cursor) {
    const first = cursor === null ? 1 : null;
    const page = await this.#latest.get("threads", { ...this.#asked, limit, cursor, count: first });
    return { rows: page.threads, cursor: page.cursor, total: page.total };
  }

  #shown() {
    const { rows, done, error } = this.pages;
    this.#place.replaceChildren();
    this.list.element.hidden = !rows.length;
    if (error) this.#place.append(failure(error, () => this.pages.retry()));
    else if (done && !rows.length) this.#place.append(this.#empty());
    this.#total.textContent = rows.length ? counted(this.pages.count, "thread") : "";
    this.list.setCount(this.pages.count);
    this.#select();
  }

  #select() {
    this.list.select(this.pages.rows.findIndex((each) => each.id === this.#thread));
  }

  #open(index) {
    const thread = this.pages.rows[index];
    if (thread) go(threadAddress(thread.id));
  }

  #empty() {
    if (Object.values(this.#asked).every((value, index) => value === undefined || index === 4)) {
      return nothing(
        "No threads yet",
        "As soon as a graph stores a checkpoint in this database, its thread stands here.",
      );
    }
    const clear = button("Show all threads", { onclick: () => go(address({ sort: this.#asked.sort })) });
    return el(
      "div",
      {},
      nothing("No thread matches", "Titles are searched whatever their case, ids exactly."),
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
      el("span.row-title", { title: name }, name || "(no name)"),
      el("time.faint", { datetime: thread.updated_at, title: exactTime(thread.updated_at) }, ago(thread.updated_at)),
    ),
    el(
      "span.row-line.faint",
      {},
      thread.status !== "idle" && el("span.word", { "data-status": thread.status }, thread.status),
      thread.title !== null && el("span.row-id", { title: thread.id }, thread.id),
      thread.problems.length > 0 && el("span.row-id", { title: thread.problems[0].problem }, "damaged"),
      thread.owner !== null && el("span.row-owner", { title: "Owner" }, thread.owner),
      el("span.push", {}, count(thread.checkpoints), el("span.unit", {}, " cp")),
      el("span.size", {}, bytes(thread.size_bytes)),
    ),
  ];
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
    metadata.setCustomValidity(isObject(metadata.value) ? "" : "JSON is expected"),
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
