// The places of a text in a thread.

import { Latest } from "./api.js";
import { el } from "./dom.js";
import { counted, shortId } from "./format.js";
import { failure, nothing, waiting } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { changed, checkpointAddress, go } from "./route.js";
import { VirtualList } from "./virtual_list.js";

const TYPED_FOR = 300; // milliseconds
const VIEWS = { values: "state", writes: "writes", metadata: "about" };

export class Search {
  #latest = new Latest();
  #thread;
  #ns;
  #text = "";
  #problems = []; // checkpoints that could not be searched
  #place = el("div.place");
  #input = el("input", {
    type: "search",
    placeholder: "Search values, writes and metadata",
    "aria-label": "Search this thread",
    spellcheck: "false",
  });

  constructor({ thread, ns }) {
    this.#thread = thread;
    this.#ns = ns;
    this.pages = new PagedRows(
      (limit, cursor) => this.#page(limit, cursor),
      () => this.#shown(),
    );
    this.list = new VirtualList({
      label: "Matches",
      name: "matches",
      rowHeight: 62,
      draw: (index) => row(this.pages.rows[index]),
      open: (index) => this.#open(this.pages.rows[index]),
      need: (end) => this.#text && this.pages.need(end),
    });
    this.list.element.hidden = true;
    this.element = el("div.view", {}, el("div.tools", {}, this.#input), this.list.element, this.#place);
    let timer = 0;
    this.#input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => go(changed({ find: this.#input.value || null }), { replace: true }), TYPED_FOR);
    });
  }

  show(route) {
    const text = route.find ?? "";
    if (this.#input !== document.activeElement) this.#input.value = text;
    if (text === this.#text && this.#place.hasChildNodes()) return;
    if (text === this.#text && this.pages.rows.length) return;
    this.#text = text;
    this.list.element.hidden = true;
    if (!text)
      this.#place.replaceChildren(
        nothing("Search this thread", "You find each value once, in the checkpoint that set it."),
      );
    else {
      this.#place.replaceChildren(waiting());
      this.pages.restart();
    }
  }

  /** Puts the cursor into the search. */
  focus() {
    this.#input.select();
  }

  refresh() {}

  close() {
    this.#latest.cancel();
  }

  async #page(limit, cursor) {
    const page = await this.#latest.get("search", {
      thread: this.#thread,
      ns: this.#ns,
      text: this.#text,
      limit,
      cursor,
    });
    this.#problems = cursor === null ? page.problems : [...this.#problems, ...page.problems];
    return { rows: page.matches, cursor: page.cursor };
  }

  #shown() {
    const { rows, done, error } = this.pages;
    this.#place.replaceChildren();
    this.list.element.hidden = !rows.length;
    if (error) this.#place.append(failure(error, () => this.pages.retry()));
    else if (done && !rows.length)
      this.#place.append(nothing("Not found", "No value, write or metadata of this thread has this text."));
    if (this.#problems.length) this.#place.append(this.#unsearched());
    this.list.setCount(this.pages.count);
  }

  #unsearched() {
    const [{ kind, location, problem }] = this.#problems;
    const others = this.#problems.length > 1 ? ` (and ${counted(this.#problems.length - 1, "other")})` : "";
    return failure({ kind: "failed", message: `Some checkpoints could not be searched. ${kind}: ${location}: ${problem}${others}` });
  }

  #open(match) {
    if (match) go(checkpointAddress(match.ns, match.id, { view: VIEWS[match.place], path: match.path }));
  }
}

function row(match) {
  if (!match) return [el("span.skeleton")];
  return [
    el(
      "span.row-line",
      {},
      el("span.row-title.code", { title: match.path }, match.path),
      el("span.faint", {}, match.place),
      el("span.row-id", { title: match.id }, shortId(match.id)),
    ),
    el("span.row-line.snippet", {}, el("span", {}, match.before, el("mark", {}, match.text), match.after)),
  ];
}
