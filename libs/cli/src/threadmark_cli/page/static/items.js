// The items of stores: a list of a namespace and those below it, and one item with its value.

import { Latest, get } from "./api.js";
import { el } from "./dom.js";
import { ago, bytes, channelPath, exactTime } from "./format.js";
import { failure, nothing, waiting } from "./messages.js";
import { PagedList } from "./paged_list.js";
import { isContainer, preview } from "./previews.js";
import { address, changed, currentRoute, go } from "./route.js";
import { ValueTree } from "./values.js";

const TYPED_FOR = 200; // milliseconds without a key, after which the typed namespace is listed
const UNFOLDED = 12; // a container of so many parts is unfolded from the start

export class Items {
  #latest = new Latest();
  #latestItem = new Latest();
  #pane;
  #prefix = null;
  #item = null;
  #names = el("datalist", { id: "namespaces" });
  #field = el("input", {
    type: "search",
    list: "namespaces",
    placeholder: "Namespace, such as users.ada",
    "aria-label": "Namespace",
    spellcheck: "false",
  });
  #rows;

  constructor(listPane, pane) {
    this.#pane = pane;
    this.#rows = new PagedList({
      label: "Items",
      name: "item",
      page: (limit, cursor) => this.#page(limit, cursor),
      row,
      open: ({ namespace, key }) => go(changed({ namespace, key })),
      empty: () => this.#empty(),
      shown: () => this.#select(),
    });
    this.list = this.#rows.list;
    let timer = 0;
    this.#field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => go(address({ items: this.#field.value }), { replace: true }), TYPED_FOR);
    });
    this.#field.addEventListener("focus", () => this.#suggest());
    const head = el("header.pane-head", {}, el("h1", {}, "Items"), this.#rows.total, this.#field, this.#names);
    listPane.append(head, this.#rows.element, this.#rows.place);
  }

  /** Shows the items of a route. */
  show(route) {
    if (!("items" in route)) return;
    if (route.items !== this.#prefix) {
      this.#prefix = route.items;
      if (this.#field !== document.activeElement) this.#field.value = route.items;
      this.#rows.restart();
    } else this.#select();
    const item = "key" in route ? JSON.stringify([route.namespace ?? "", route.key]) : null;
    if (item === this.#item) return;
    this.#item = item;
    this.#pane.replaceChildren();
    if (item !== null) this.#fetch(route.namespace ?? "", route.key);
  }

  /** Puts the cursor into the search. */
  search() {
    this.#field.select();
  }

  async #page(limit, cursor) {
    const count = cursor === null ? 1 : null;
    const page = await this.#latest.get("items", { prefix: this.#prefix, limit, cursor, count });
    return { rows: page.items, cursor: page.cursor, total: page.total };
  }

  #empty() {
    if (this.#prefix) return nothing("No items", "Give the whole labels of a namespace, joined by dots.");
    return nothing("No items yet", "You see an item here as soon as a store puts one into this database.");
  }

  #select() {
    const { namespace = "", key } = currentRoute();
    this.#rows.select((each) => each.key === key && each.namespace === namespace);
  }

  async #suggest() {
    const { namespaces } = await get("namespaces").catch(() => ({ namespaces: [] }));
    this.#names.replaceChildren(...namespaces.map((value) => el("option", { value })));
  }

  async #fetch(namespace, key) {
    this.#pane.replaceChildren(waiting());
    const back = el("a.back", { href: address({ items: this.#prefix }) }, "Items");
    try {
      const item = await this.#latestItem.get("item", { namespace, key });
      this.#pane.replaceChildren(heading(item, back), contents(item));
    } catch (error) {
      this.#pane.replaceChildren(back, failure(error, () => this.#fetch(namespace, key)));
    }
  }
}

function row(item) {
  if (!item) return [el("span.skeleton")];
  const { namespace, key, updated_at: updated, problem } = item;
  return [
    el(
      "span.row-line",
      {},
      el("span.row-title", { title: key }, key || "(empty key)"),
      el("time.faint", { datetime: updated, title: `Updated ${exactTime(updated)}` }, ago(updated)),
    ),
    el(
      "span.row-line.faint",
      {},
      el("span.row-id", { title: namespace }, namespace),
      problem === null ? el("span.row-id", {}, preview(item.value)) : el("span.row-id", { title: problem }, "damaged"),
      item.owner !== null && el("span.row-owner", { title: "Owner" }, item.owner),
      el("span.push.size", {}, bytes(item.bytes)),
    ),
  ];
}

function heading(item, back) {
  const fact = (name, time) => time !== null && el("span", { title: exactTime(time) }, `${name} ${ago(time)}`);
  return el(
    "header.pane-head",
    {},
    back,
    el("div.title-line", {}, el("h2", {}, item.key || "(empty key)")),
    el(
      "div.facts",
      {},
      el("span.id", {}, item.namespace),
      fact("created", item.created_at),
      fact("updated", item.updated_at),
      item.expires_at !== null && el("span", {}, `expires ${exactTime(item.expires_at)}`),
      item.owner !== null && el("span", {}, `owner ${item.owner}`),
      el("span", {}, bytes(item.bytes)),
    ),
  );
}

function contents({ namespace, key, fields, problem }) {
  const view = el("div.view.scrolls");
  if (problem !== null) view.append(failure({ kind: "failed", message: problem }));
  else if (!fields.length) view.append(nothing("Empty value", "The value of this item has no fields."));
  else {
    const load = (path, offset, limit) => get("item", { namespace, key, path, offset, limit });
    const values = new ValueTree({ label: "Value", load });
    for (const [name, node] of fields) {
      const unfolded = isContainer(node) && node.n !== null && node.n <= UNFOLDED;
      values.add(name, node, channelPath(name), { unfolded });
    }
    view.append(values.element);
  }
  return view;
}
