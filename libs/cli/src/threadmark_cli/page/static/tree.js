// The checkpoints of a thread as a tree: a lane for each branch, newest first.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { entryKey, namespaceWord, stepLine, warnings } from "./entries.js";
import { count, counted, namespaceName, shortId, shortTime, stepName } from "./format.js";
import { Lanes } from "./lanes.js";
import { failure, nothing, waiting } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { checkpointAddress, go } from "./route.js";
import { VirtualList } from "./virtual_list.js";

const ROW_HEIGHT = 34;
const NAMED_BRANCHES = 12;

/** Returns the branches, the namespaces and the checkpoints of a thread, or of one of its namespaces. */
export async function fetchTree(latest, thread, ns = null) {
  const { branches, nodes, namespaces, left_out: leftOut } = await latest.get("tree", { thread });
  const rows = nodes.map(([place, id, parent, created, step, source, branch]) => {
    return { ns: namespaces[place], id, parent, created_at: created, step, source, branch };
  });
  if (ns === null) return { branches, namespaces, rows, leftOut };
  const kept = branches.filter((branch) => branch.ns === ns);
  const places = new Map(kept.map((branch, place) => [branches.indexOf(branch), place]));
  const within = rows.filter((row) => row.ns === ns).map((row) => ({ ...row, branch: places.get(row.branch) }));
  return { branches: kept, namespaces: [ns], rows: within, leftOut };
}

export class Tree {
  #latest = new Latest();
  #ofPages = new Latest();
  #again = new Latest();
  #thread;
  #ns;
  #newest;
  #tree = null;
  #lanes = null;
  #entries = new Map();
  #route = {};
  #branches = el("div.branches");
  #place = el("div.place", {}, waiting());

  /** `newest` is asked for the key of the checkpoint that is open if the route names none. */
  constructor({ thread, ns, newest }) {
    this.#thread = thread;
    this.#ns = ns;
    this.#newest = newest;
    // The tree itself knows no nodes and no writes: those of the visible rows come after it.
    this.pages = new PagedRows(
      (limit, cursor) => this.#page(limit, cursor),
      () => this.#name(this.pages.rows),
    );
    this.list = new VirtualList({
      label: "Tree of checkpoints, newest first",
      name: "checkpoints",
      rowHeight: ROW_HEIGHT,
      draw: (index) => this.#row(this.#tree.rows[index]),
      open: (index) => this.#open(this.#tree.rows[index]),
      need: (end) => this.pages.need(end),
    });
    this.list.element.classList.add("tree");
    this.element = el("div.view", {}, this.#branches, this.list.element, this.#place);
    this.pages.restart();
    this.#fetch();
  }

  /** Marks the checkpoint that a route names. */
  show(route) {
    this.#route = route;
    if (this.#tree && !this.#select(true)) this.refresh(); // it may have been stored just now
  }

  /** Fetches the tree again, and the details of its newest rows. */
  async refresh() {
    const page = this.#page(100, null, this.#again);
    await this.#fetch();
    this.#name((await page).rows);
  }

  close() {
    this.#latest.cancel();
    this.#ofPages.cancel();
    this.#again.cancel();
  }

  async #fetch() {
    try {
      this.#take(await fetchTree(this.#latest, this.#thread, this.#ns));
    } catch (error) {
      this.#place.replaceChildren(failure(error, () => this.#fetch()));
    }
  }

  async #page(limit, cursor, asked = this.#ofPages) {
    const page = await asked.get("history", { thread: this.#thread, ns: this.#ns, limit, cursor });
    return { rows: page.entries, cursor: page.cursor };
  }

  #name(entries) {
    for (const entry of entries) this.#entries.set(entryKey(entry), entry);
    if (this.#tree) this.list.setCount(this.#tree.rows.length);
  }

  #take(tree) {
    const isFirst = this.#tree === null;
    this.#tree = tree;
    this.#lanes = new Lanes(tree, ROW_HEIGHT);
    this.#place.replaceChildren();
    if (!tree.rows.length) this.#place.append(nothing("No checkpoints yet", "You see them here as soon as your graph stores one."));
    this.list.element.hidden = !tree.rows.length;
    this.#branches.replaceChildren(this.#legend());
    this.list.setCount(tree.rows.length);
    this.#select(isFirst);
  }

  #select(reveal) {
    const { ns = "", at } = this.#route;
    const key = at === undefined ? this.#newest() : entryKey({ ns, id: at });
    const index = this.#tree.rows.findIndex((row) => entryKey(row) === key);
    this.list.select(index);
    if (index >= 0 && reveal) this.list.reveal(index);
    return index >= 0 || at === undefined;
  }

  #row(row) {
    const entry = this.#entries.get(entryKey(row));
    const branch = this.#tree.branches[row.branch];
    const words = entry ? warnings(entry) : [];
    if (row.ns !== "") words.push(namespaceWord(row.ns));
    if (row.ns === "" && branch.head === row.id && branch.is_newest)
      words.push(el("span.word", { "data-kind": "newest" }, "newest"));
    return [this.#lanes.draw(row), stepLine(entry ?? row, { words, written: shortTime })];
  }

  #open(row) {
    go(checkpointAddress(row.ns, row.id));
  }

  #legend() {
    const { branches, namespaces, rows, leftOut } = this.#tree;
    const older = leftOut > 0 && `; ${counted(leftOut, "older checkpoint")} in the timeline`;
    if (branches.length < 2) return el("p.total", {}, rows.length ? "One branch, no forks" : "", older);
    const known = new Map(rows.map((row) => [entryKey(row), row]));
    const chips = branches.slice(0, NAMED_BRANCHES).map((branch, index) => this.#chip(branch, index, known));
    const more = branches.length - chips.length;
    const facts = `${count(branches.length)} branches`;
    const total = namespaces.length > 1 ? `${facts}, ${counted(namespaces.length, "namespace")}` : facts;
    return el(
      "div",
      {},
      el("p.total", {}, total, older),
      el("div.chips", {}, ...chips, more > 0 && `and ${count(more)} more`),
    );
  }

  #chip(branch, index, known) {
    const from = branch.forked_from && known.get(entryKey({ ns: branch.ns, id: branch.forked_from }));
    const name = from ? `from ${stepName(from)}` : branch.ns === "" ? "trunk" : namespaceName(branch.ns);
    return el(
      "button.chip",
      {
        type: "button",
        title: `${branch.ns && `Namespace ${branch.ns}: `}${counted(branch.checkpoints, "checkpoint")}, newest ${shortId(branch.head)}`,
        onclick: () => this.#open({ ns: branch.ns, id: branch.head }),
      },
      el(`span.dot.lane-${this.#lanes.colour(index)}`),
      name,
      el("span.faint", {}, ` ${count(branch.checkpoints)}`),
    );
  }
}
