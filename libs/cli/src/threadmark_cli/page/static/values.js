// Values as a tree that is unfolded: typed, and fetched as far as one looks.

import { button, el } from "./dom.js";
import { copy, failure, waiting } from "./messages.js";
import { isContainer, preview, sizeName, typeName } from "./previews.js";

const ITEMS = 50; // so many items of a long container are fetched at a time
const CHARACTERS = 100_000; // so many of a long text
const SHORT = 72; // a text as long as that stands in its line as a whole
const TITLES = {
  changes:
    "LangGraph keeps this channel as changes. To get its value, call graph.get_state(config).values in your code.",
};

export class ValueTree {
  #load;
  #opened;
  #blame;
  #target = null;

  /**
   * @param load Fetches more of a value: (path, offset, limit) => Promise<NODE>; null if nothing can be fetched.
   * @param opened A Map of paths to whether they are unfolded, which outlives this tree.
   * @param blame A function that takes the path of a value and returns an element with its origin.
   */
  constructor({ label, load = null, opened = new Map(), blame = null }) {
    this.#load = load;
    this.#opened = opened;
    this.#blame = blame;
    this.element = el("div.values", { role: "tree", "aria-label": label });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("click", (event) => this.#click(event));
  }

  /** Unfolds the way to a path, as soon as that is added. */
  lookFor(path) {
    this.#target = path ?? null;
  }

  /** Adds a value at the outermost level, with notes next to its name. */
  add(name, node, path, { notes = [], unfolded = false } = {}) {
    const item = this.#item({ name: el("span.key", {}, name), node, path, level: 1, notes, unfolded });
    if (!this.element.hasChildNodes()) item.tabIndex = 0;
    this.element.append(item);
    this.#found(item, path);
  }

  #item({ name, node, path, level, notes = [], unfolded = false }) {
    const opens = isContainer(node) || (node.t === "str" && (node.n > SHORT || node.v.includes("\n")));
    const row = el(
      "div.node-row",
      {},
      el("span.fold", { "aria-hidden": "true" }),
      name,
      el("span.type", { "data-type": node.t, title: TITLES[node.t] ?? node.name ?? node.t }, typeName(node)),
      el("span.preview", { "data-type": node.t }, preview(node)),
      el("span.faint.size", {}, sizeName(node)),
      ...notes,
      node.t !== "changes" && this.#tools(path),
    );
    const item = el("div.node", { role: "treeitem", "aria-level": level, tabindex: "-1" }, row);
    if (path !== null) item.dataset.path = path;
    if (opens) {
      const within = () => this.#within(node, path, level);
      item.setAttribute("aria-expanded", "false");
      item.unfold = (open) => this.#unfold(item, open, within);
      const leads = this.#leadsToTarget(path) && path !== this.#target;
      if (leads || (this.#opened.get(path) ?? unfolded)) item.unfold(true);
    }
    return item;
  }

  #tools(path) {
    if (path === null || path === "") return null;
    return el(
      "span.node-tools",
      {},
      this.#blame &&
        button("", {
          icon: "since",
          label: "Find the origin",
          title: "Find the checkpoint that set this value (b)",
          tabindex: "-1",
          "data-tool": "blame",
        }),
      button("", {
        icon: "copy",
        label: "Copy the path",
        title: "Copy the path (y)",
        tabindex: "-1",
        "data-tool": "copy",
      }),
    );
  }

  #unfold(item, open, within) {
    item.setAttribute("aria-expanded", String(open));
    if ("path" in item.dataset) this.#opened.set(item.dataset.path, open);
    if (open && !item.querySelector(":scope > .within")) item.append(within());
    item.querySelector(":scope > .within")?.toggleAttribute("hidden", !open);
  }

  #within(node, path, level) {
    const place = el(`div.within${node.t === "str" ? "" : ".deeper"}`, { role: "group" });
    const wanted = this.#wantedIndex(path);
    if (node.t === "changes") place.append(el("p.note", {}, TITLES.changes));
    if (node.t === "str") this.#text(place, node, path);
    else if (parts(node)?.length > wanted) this.#parts(place, node, path, level);
    else {
      const offset = Math.floor(wanted / ITEMS) * ITEMS;
      this.#fetch(place, path, offset, ITEMS, (found) => this.#parts(place, found, path, level));
    }
    return place;
  }

  #text(place, node, path) {
    const text = el("pre.text", {}, node.v);
    place.append(text);
    const more = (shown) => {
      if (shown >= node.n || path === null || !this.#load) return;
      const rest = node.n - shown;
      const next = button(
        `Show ${rest > CHARACTERS ? `${CHARACTERS.toLocaleString("en")} more of ${node.n.toLocaleString("en")}` : "all"} characters`,
        {
          onclick: () => {
            next.remove();
            this.#fetch(place, path, shown, CHARACTERS, (found) => {
              text.append(found.v);
              more(shown + Math.max(1, [...found.v].length));
            });
          },
        },
      );
      place.append(next);
    };
    more([...node.v].length);
  }

  #parts(place, node, path, level) {
    const found = parts(node);
    const offset = node.offset ?? 0;
    const step = (from) => (more) => {
      more.remove();
      const to = from < offset ? offset - from : ITEMS;
      this.#fetch(place, path, from, to, (next) => this.#parts(place, next, path, level));
    };
    if (offset > 0 && !place.hasChildNodes())
      place.append(moreButton("Show earlier items", step(Math.max(0, offset - ITEMS))));
    const items = found.map((part, index) => {
      const each = {
        ...part,
        path: part.step === null || path === null ? null : path + part.step,
        level: level + 1,
      };
      return [this.#item(each), each.path, offset + index];
    });
    const after = [...place.children].find(
      (child) => child.matches(".node") && Number(child.dataset.place) > offset,
    );
    for (const [item, itemPath, index] of items) {
      item.dataset.place = index;
      place.insertBefore(item, after ?? null);
      this.#found(item, itemPath);
    }
    const end = offset + found.length;
    const left = node.n - end;
    if (left > 0 && !after && this.#load && path !== null) {
      place.append(moreButton(`Show ${Math.min(ITEMS, left)} more of ${node.n.toLocaleString("en")}`, step(end)));
    } else if (left > 0 && !after)
      place.append(el("p.faint", {}, `${left.toLocaleString("en")} more, which the page cannot load: they have no path`));
  }

  async #fetch(place, path, offset, limit, show) {
    if (!this.#load || path === null) {
      place.append(el("p.faint", {}, "The page cannot load this part: it has no path."));
      return;
    }
    const wait = waiting();
    place.append(wait);
    try {
      const found = await this.#load(path, offset, limit);
      wait.remove();
      show(found);
    } catch (error) {
      wait.replaceWith(failure(error));
    }
  }

  #leadsToTarget(path) {
    const target = this.#target;
    return (
      target !== null &&
      path !== null &&
      target.startsWith(path) &&
      ["", ".", "["].includes(target.charAt(path.length))
    );
  }

  /** The item of a list that leads to the wanted one; 0 if none does. */
  #wantedIndex(path) {
    const index = this.#leadsToTarget(path) && /^\[(\d+)\]/.exec(this.#target.slice(path.length));
    return index ? Number(index[1]) : 0;
  }

  #found(item, path) {
    if (this.#target === null || path !== this.#target) return;
    this.#target = null;
    item.classList.add("found");
    item.unfold?.(true);
    requestAnimationFrame(() => item.scrollIntoView({ block: "center" }));
  }

  #click(event) {
    const item = event.target.closest(".node");
    const tool = event.target.closest("[data-tool]");
    if (!item || (event.target.closest("button, a, .text, .since") && !tool)) return;
    this.#focus(item);
    if (tool) this.#use(tool.dataset.tool, item);
    else if (event.target.closest(".node-row")) this.#toggle(item);
  }

  #toggle(item) {
    item.unfold?.(item.getAttribute("aria-expanded") !== "true");
  }

  #use(tool, item) {
    const { path } = item.dataset;
    if (path === undefined || path === "") return;
    if (tool === "copy") copy(path, "Path");
    else if (this.#blame) {
      item.querySelector(":scope > .since")?.remove();
      item.firstElementChild.after(el("div.since", { role: "status" }, this.#blame(path)));
    }
  }

  #key(event) {
    const item = event.target.closest(".node");
    if (event.target !== item || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...this.element.querySelectorAll(".node")].filter((each) => each.offsetParent !== null);
    const here = items.indexOf(item);
    const isOpen = item.getAttribute("aria-expanded") === "true";
    const actions = {
      ArrowDown: () => this.#focus(items[here + 1]),
      ArrowUp: () => this.#focus(items[here - 1]),
      ArrowRight: () => (isOpen ? this.#focus(items[here + 1]) : item.unfold?.(true)),
      ArrowLeft: () => (isOpen ? item.unfold(false) : this.#focus(item.parentElement.closest(".node"))),
      Home: () => this.#focus(items[0]),
      End: () => this.#focus(items.at(-1)),
      Enter: () => this.#toggle(item),
      " ": () => this.#toggle(item),
      b: () => this.#use("blame", item),
      y: () => this.#use("copy", item),
    };
    actions.j = actions.ArrowDown;
    actions.k = actions.ArrowUp;
    if (!(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  #focus(item) {
    if (!item) return;
    this.element.querySelector('[tabindex="0"].node')?.setAttribute("tabindex", "-1");
    item.tabIndex = 0;
    item.focus({ preventScroll: true });
    item.firstElementChild.scrollIntoView({ block: "nearest" });
  }
}

/** The parts of a container with their names; undefined if it was cut. */
function parts(node) {
  if (node.t === "object" || node.t === "changes")
    return node.entries?.map(([name, part, step]) => ({ name: el("span.key", {}, name), node: part, step }));
  if (node.t === "dict") {
    return node.entries?.map(([key, part, step]) => ({
      name: el("span.key", { "data-type": key.t }, preview(key)),
      node: part,
      step,
    }));
  }
  const hasPlaces = node.t !== "set" && node.t !== "frozenset";
  return node.items?.map((part, index) => {
    const place = (node.offset ?? 0) + index;
    return {
      name: el("span.key.place", {}, hasPlaces ? String(place) : "·"),
      node: part,
      step: hasPlaces ? `[${place}]` : null,
    };
  });
}

function moreButton(name, step) {
  const more = button(name, { onclick: () => step(more) });
  return more;
}

/** Returns a value that is plain JSON as one that came from the server. */
export function fromJson(value) {
  if (value === null || value === undefined) return { t: "none" };
  if (typeof value === "boolean") return { t: "bool", v: value };
  if (typeof value === "number") return { t: Number.isInteger(value) ? "int" : "float", v: String(value) };
  if (typeof value === "string") return { t: "str", v: value, n: [...value].length };
  if (Array.isArray(value)) return { t: "list", n: value.length, items: value.map(fromJson) };
  const entries = Object.entries(value).map(([key, part]) => [fromJson(key), fromJson(part), null]);
  return { t: "dict", n: entries.length, entries };
}
