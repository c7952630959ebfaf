// The dialog in which one chooses a checkpoint of the thread: to jump to it, or to compare with it.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { entryKey, namespaceWord, stepLine } from "./entries.js";
import { counted, shortId } from "./format.js";
import { failure, waiting } from "./messages.js";
import { PagedRows } from "./paged_rows.js";
import { fetchTree } from "./tree.js";
import { VirtualList } from "./virtual_list.js";

/** Asks for a checkpoint, of one namespace if you pass that, and calls `chosen` with it. */
export function chooseCheckpoint({ thread, ns = null, title, chosen }) {
  const latest = new Latest();
  const found = el("p.total", { role: "status" });
  const place = el("div.place", {}, waiting());
  const input = el("input", {
    type: "search",
    placeholder: "Step, node, time, part of an id, or ~2",
    "aria-label": "Find a checkpoint",
    spellcheck: "false",
  });
  const entries = new Map(); // the tree knows no nodes: they come for the rows that are seen
  const ofPages = new Latest();
  const pages = new PagedRows(
    async (limit, cursor) => {
      const page = await ofPages.get("history", { thread, ns, limit, cursor });
      return { rows: page.entries, cursor: page.cursor };
    },
    () => {
      for (const entry of pages.rows) entries.set(entryKey(entry), entry);
      list.redrawAll();
    },
  );
  let all = [];
  let rows = [];
  const choose = (row) => {
    if (!row) return;
    dialog.close();
    chosen(row);
  };
  const list = new VirtualList({
    label: "Checkpoints",
    name: "choices",
    rowHeight: 34,
    draw: (index) => [choice(rows[index], entries)],
    open: (index) => choose(rows[index]),
    need: (end) => pages.need(all.indexOf(rows[end - 1]) + 1),
  });
  const narrow = () => {
    rows = matching(all, input.value.trim(), entries);
    found.textContent = counted(rows.length, "checkpoint");
    list.element.scrollTop = 0;
    list.setCount(rows.length);
  };
  input.addEventListener("input", narrow);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") loaded.then(() => choose(rows[0])); // one may type faster than the rows come
    else if (event.key === "ArrowDown") list.element.focus();
    else return;
    event.preventDefault();
  });
  const close = button("Cancel", { onclick: () => dialog.close() });
  const dialog = el(
    "dialog.chooser",
    { "aria-label": title },
    el("h2", {}, title),
    input,
    found,
    list.element,
    place,
    close,
  );
  dialog.addEventListener("close", () => {
    latest.cancel();
    ofPages.cancel();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  const loaded = fetchTree(latest, thread, ns).then(
    (tree) => {
      all = tree.rows;
      place.replaceChildren();
      narrow();
    },
    (error) => place.replaceChildren(failure(error)),
  );
}

function choice(row, entries) {
  const ns = row.ns !== "" && namespaceWord(row.ns);
  const known = entries.get(entryKey(row)) ?? { ...row, source: row.source === "loop" ? "" : row.source };
  return stepLine(known, { words: [ns, el("span.row-id", { title: row.id }, shortId(row.id))] });
}

/** A number is a step, ~2 is two before the newest, anything else is a part of an id, a time, a source
 *  or a node. */
function matching(rows, text, entries) {
  if (!text) return rows;
  const back = /^~(\d+)$/.exec(text);
  if (back) return rows.slice(Number(back[1]), Number(back[1]) + 1);
  if (/^-?\d+$/.test(text)) {
    const steps = rows.filter((row) => row.step === Number(text));
    if (steps.length) return steps;
  }
  const wanted = text.toLowerCase();
  const words = (row) => {
    const nodes = entries.get(entryKey(row))?.nodes.join(" ") ?? "";
    return `${row.id} ${row.created_at} ${row.source} ${row.ns} step ${row.step} ${nodes}`.toLowerCase();
  };
  return rows.filter((row) => words(row).includes(wanted));
}
