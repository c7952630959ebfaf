// The checkpoints of a thread as a tree: a lane for each branch, newest first.

import { Latest } from "./api.js";
import { el } from "./dom.js";
import { entryKey, stepLine } from "./entries.js";
import { counted, shortId, stepName } from "./format.js";
import { Lanes } from "./lanes.js";
import { failure, nothing, waiting } from "./messages.js";
import { checkpointAddress, go } from "./route.js";
import { VirtualList } from "./virtual_list.js";

const ROW_HEIGHT = 34;
const NAMED_BRANCHES = 12;

/** Returns the tree of a thread as objects: its branches, and its nodes with their names. */
export async function fetchTree(latest, thread) {
  const answer = await latest.get("tree", { thread });
  const nodes = answer.nodes.map(([ns, id, parent, created, step, source, branch]) => {
    return { ns: answer.namespaces[ns], id, parent, created, step, source, branch };
  });
  return { ...answer, rows: nodes };
}

export class Tree {
  #latest = new Latest();
  #thread;
  #ns;
  #newest;
  #tree = null;
  #rows = [];
  #lanes = null;
  #route = {};
  #branches = el("div.branches");
  #place = el("div.place", {}, waiting());

  constructor({ thread, ns, newest }) {
    this.#thread = thread;
    this.#ns = ns;
    this.#newest = newest;
    this.list = new VirtualList({
      label: "Tree of checkpoints, newest first",
      name: "checkpoints",
      rowHeight: ROW_HEIGHT,
      draw: (index) => this.#row(index),
      open: (index) => go(checkpointAddress(this.#rows[index].ns, this.#rows[index].id)),
    });
    this.list.element.classList.add("tree");
    this.list.element.hidden = true;
    this.element = el("div.view", {}, this.#branches, this.list.element, this.#place);
    this.refresh();
  }

  /** Marks the checkpoint that a route names. */
  show(route) {
    this.#route = route;
    this.#select(true);
  }

  /** Fetches the tree again. */
  async refresh() {
    try {
      this.#take(await fetchTree(this.#latest, this.#thread));
    } catch (error) {
      this.#place.replaceChildren(failure(error, () => this.refresh()));
    }
  }

  close() {
    this.#latest.cancel();
  }

  #take(tree) {
    const before = this.#tree;
    this.#tree = only(tree, this.#ns);
    this.#rows = this.#tree.rows;
    this.#lanes = new Lanes(this.#tree, ROW_HEIGHT);
    this.#place.replaceChildren();
    if (!this.#rows.length) this.#place.append(nothing("No checkpoints", "There is nothing to draw yet."));
    this.list.element.hidden = !this.#rows.length;
    this.#branches.replaceChildren(this.#legend());
    this.list.setCount(this.#rows.length);
    this.#select(before === null);
  }

  #select(reveal) {
    const key = "at" in this.#route ? entryKey({ ns: this.#route.ns ?? "", id: this.#route.at }) : this.#newest();
    const index = this.#rows.findIndex((row) => entryKey(row) === key);
    this.list.select(index);
    if (index >= 0 && reveal) this.list.reveal(index);
  }

  #row(index) {
    const node = this.#rows[index];
    const branch = this.#tree.branches[node.branch];
    const isHead = branch.head === node.id;
    const words = [];
    if (node.ns !== "") words.push(el("span.row-ns", { title: `Namespace ${node.ns}` }, node.ns));
    if (isHead)
      words.push(
        el(
          "span.word",
          { "data-kind": branch.is_newest ? "newest" : "head" },
          branch.is_newest ? "newest" : "head",
        ),
      );
    return [this.#lanes.draw(index, node.branch), stepLine(node, ...words)];
  }

  #legend() {
    const { branches, namespaces } = this.#tree;
    if (branches.length < 2) return el("p.total", {}, "One line, without forks.");
    const steps = new Map(this.#rows.map((row) => [entryKey(row), row]));
    const chips = branches.slice(0, NAMED_BRANCHES).map((branch, index) => {
      const head = { ns: branch.ns, id: branch.head };
      const from = branch.forked_from && steps.get(entryKey({ ns: branch.ns, id: branch.forked_from }));
      const title = `${counted(branch.checkpoints, "checkpoint")}, head ${shortId(branch.head)}`;
      const name = from ? `from ${stepName(from)}` : branch.ns === "" ? "trunk" : branch.ns;
      return el(
        "a.chip",
        { href: checkpointAddress(head.ns, head.id), title, onclick: (event) => this.#follow(event, head) },
        el(`span.dot.lane-${this.#lanes.colour(index)}`),
        name,
        el("span.faint", {}, ` ${branch.checkpoints}`),
      );
    });
    const more = branches.length - chips.length;
    const names = [counted(branches.length, "branch").replace("branchs", "branches")];
    if (namespaces.length > 1) names.push(counted(namespaces.length, "namespace"));
    return el(
      "div",
      {},
      el("p.total", {}, names.join(", ")),
      el("div.chips", {}, ...chips, more > 0 && `and ${more} more`),
    );
  }

  #follow(event, head) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(checkpointAddress(head.ns, head.id));
  }
}

/** Leaves only the nodes and branches of one namespace; null for all. */
function only(tree, ns) {
  if (ns === null) return tree;
  const kept = tree.branches.flatMap((branch, index) => (branch.ns === ns ? [index] : []));
  const places = new Map(kept.map((index, place) => [index, place]));
  const nodes = tree.nodes
    .filter((node) => places.has(node[6]))
    .map((node) => [...node.slice(0, 6), places.get(node[6])]);
  const rows = tree.rows
    .filter((row) => places.has(row.branch))
    .map((row) => ({ ...row, branch: places.get(row.branch) }));
  return { ...tree, nodes, rows, branches: kept.map((index) => tree.branches[index]) };
}
