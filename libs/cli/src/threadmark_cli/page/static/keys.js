// The keys of the page, in one table, which `?` shows as well.

import { el, isTyping } from "./dom.js";
import { closing } from "./messages.js";

/** Listens for keys. `actions` has a function for each name in the table. */
export function listenForKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const found = KEYS.find(({ keys, name }) => name && keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    actions[found.name](event.key);
  });
}

/** Shows which keys there are. */
export function showKeys() {
  const rows = KEYS.map(({ shown, keys, means }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, ...(shown ?? keys).map((key) => el("kbd", {}, key))),
      el("td", {}, means),
    ),
  );
  const dialog = el(
    "dialog.keys",
    { "aria-label": "Keyboard shortcuts" },
    el("h2", {}, "Keyboard shortcuts"),
    el("table", {}, el("tbody", {}, ...rows)),
    closing(),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const KEYS = [
  { keys: ["j", "ArrowDown"], shown: ["j", "↓"], means: "Next row", name: "down" },
  { keys: ["k", "ArrowUp"], shown: ["k", "↑"], means: "Previous row", name: "up" },
  { keys: ["Enter"], means: "Open the row, or fold and unfold the value" },
  { keys: ["→", "←"], means: "Unfold or fold the value" },
  { keys: ["/"], means: "Search threads", name: "search" },
  { keys: ["f"], means: "Search this thread", name: "find" },
  { keys: ["g"], means: "Jump to a checkpoint", name: "jump" },
  { keys: ["t"], means: "Switch between timeline and tree", name: "tree" },
  { keys: ["1", "2", "3", "4"], means: "State, changes, writes, metadata", name: "view" },
  { keys: ["["], means: "Go to the parent checkpoint", name: "parent" },
  { keys: ["]"], means: "Go to the next checkpoint", name: "next" },
  { keys: ["c"], means: "Copy the config of the checkpoint", name: "config" },
  { keys: ["d"], means: "Compare with another checkpoint", name: "compare" },
  { keys: ["b"], means: "Find the checkpoint that set the value" },
  { keys: ["y"], means: "Copy the path of the value" },
  { keys: ["Escape"], shown: ["Esc"], means: "Go back", name: "back" },
  { keys: ["?"], means: "Show the keyboard shortcuts", name: "keys" },
];
