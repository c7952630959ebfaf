// The keys of the page, in one table, which is also what `?` shows.

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
    { "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("table", {}, el("tbody", {}, ...rows)),
    closing(),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const KEYS = [
  { keys: ["j", "ArrowDown"], shown: ["j", "↓"], means: "The next row", name: "down" },
  { keys: ["k", "ArrowUp"], shown: ["k", "↑"], means: "The row before", name: "up" },
  { keys: ["Enter"], means: "Open the row; fold or unfold a value" },
  { keys: ["→", "←"], means: "Unfold and fold a value" },
  { keys: ["/"], means: "Search threads", name: "search" },
  { keys: ["f"], means: "Search in the thread", name: "find" },
  { keys: ["g"], means: "Jump to a checkpoint", name: "jump" },
  { keys: ["t"], means: "Timeline or tree", name: "tree" },
  { keys: ["1", "2", "3", "4"], means: "State, changes, writes, metadata", name: "view" },
  { keys: ["["], means: "The parent of the checkpoint", name: "parent" },
  { keys: ["]"], means: "The checkpoint after it", name: "next" },
  { keys: ["c"], means: "Copy the configuration of the checkpoint", name: "config" },
  { keys: ["d"], means: "Compare with another checkpoint", name: "compare" },
  { keys: ["b"], means: "Since when is the value so?" },
  { keys: ["y"], means: "Copy the path of the value" },
  { keys: ["Escape"], shown: ["Esc"], means: "Back", name: "back" },
  { keys: ["?"], means: "These keys", name: "keys" },
];
