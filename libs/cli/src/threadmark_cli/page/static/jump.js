// The dialog in which one chooses a checkpoint of the thread: to jump to it, or to compare with it.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { stepLine } from "./entries.js";
import { counted, shortId } from "./format.js";
import { failure, waiting } from "./messages.js";
import { fetchTree } from "./tree.js";
import { VirtualList } from "./virtual_list.js";

/** Asks for a checkpoint, of one namespace if that is given, and calls `chosen` with it. */
export function chooseCheckpoint({ thread, ns = null, title, chosen }) {
  const latest = new Latest();
  const found = el("p.total", { role: "status" });
  const place = el("div.place", {}, waiting());
  const input = el("input", {
    type: "search",
    placeholder: "A step, a time, a part of an id, ~2",
    "aria-label": "Which checkpoint",
    spellcheck: "false",
  });
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
    draw: (index) => [choice(rows[index])],
    open: (index) => choose(rows[index]),
  });
  const narrow = () => {
    rows = matching(all, input.value.trim());
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

function choice(row) {
  const ns = row.ns !== "" && el("span.row-ns", {}, row.ns);
  return stepLine(row, { words: [ns, el("span.row-id", { title: row.id }, shortId(row.id))] });
}

/** A number is a step, ~2 is two before the newest, anything else is a part of an id, a time or a source. */
function matching(rows, text) {
  if (!text) return rows;
  const back = /^~(\d+)$/.exec(text);
  if (back) return rows.slice(Number(back[1]), Number(back[1]) + 1);
  if (/^-?\d+$/.test(text)) {
    const steps = rows.filter((row) => row.step === Number(text));
    if (steps.length) return steps;
  }
  const wanted = text.toLowerCase();
  return rows.filter((row) =>
    `${row.id} ${row.created_at} ${row.source} ${row.ns} step ${row.step}`.toLowerCase().includes(wanted),
  );
}
