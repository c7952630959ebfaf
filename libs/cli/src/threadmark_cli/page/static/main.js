// Begins: the three panes, the view of the address, and the keys.

import { get } from "./api.js";
import { Checkpoint } from "./checkpoint.js";
import { zone } from "./format.js";
import { Items } from "./items.js";
import { Live } from "./live.js";
import { failure } from "./messages.js";
import { listenForKeys, showKeys } from "./keys.js";
import { address, changed, currentRoute, go, listingAddress } from "./route.js";
import { Thread } from "./thread.js";
import { Threads } from "./threads.js";

const VIEWS = ["state", "changes", "writes", "about"];

const place = (id) => document.getElementById(id);

async function begin() {
  const threads = new Threads(place("threads"));
  const about = get("about").then(introduce);
  threads.show(currentRoute());
  const { write } = await about;
  const items = new Items(place("items"), place("item"));
  const thread = new Thread(place("thread"), {
    current: () => checkpoint.current,
    hasChanged: (newest) => checkpoint.refresh(newest),
    told: (found) => threads.take({ threads: [found], gone: [] }),
    opened: () => follow(),
  });
  const checkpoint = new Checkpoint(place("checkpoint"), { canWrite: write, told: () => thread.mark() });
  const live = new Live({ thread, list: threads });
  const follow = () => {
    // If no thread can be followed yet, the stream of the one before goes on until there is.
    if (thread.followed !== null || !("thread" in currentRoute()))
      live.follow({ thread: thread.followed, list: threads.isSeen });
  };
  const show = () => {
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close(); // it was about the last view
    const route = currentRoute();
    document.body.dataset.shows = "items" in route ? ("key" in route ? "item" : "items") : "at" in route ? "checkpoint" : "thread" in route ? "thread" : "threads";
    document.title = "thread" in route ? `${route.thread} – Threadmark` : "Threadmark";
    const [ofThreads, ofItems] = place("kinds").children;
    const [shown, other] = "items" in route ? [ofItems, ofThreads] : [ofThreads, ofItems];
    shown.setAttribute("aria-current", "page");
    other.removeAttribute("aria-current");
    items.show(route);
    threads.show(route);
    thread.show(route);
    checkpoint.show(route);
    follow();
  };
  addEventListener("resize", follow); // a narrow window shows a thread without the list
  addEventListener("hashchange", show);
  place("keys").addEventListener("click", showKeys);
  listenForKeys(actions({ threads, thread, checkpoint, items }));
  show();
}

function introduce(about) {
  place("where").textContent = about.url;
  place("where").title = `${about.backend}, threadmark ${about.version}`;
  place("zone").textContent = zone();
  place("kinds").hidden = !about.items;
  const mode = place("mode");
  mode.hidden = false;
  mode.dataset.kind = about.write ? "write" : "read";
  mode.textContent = about.write ? "can write" : "read-only";
  mode.title = about.write
    ? "You can fork and restore checkpoints"
    : "You can only read. To fork and restore, start `threadmark serve --write`";
  return about;
}

function actions({ threads, thread, checkpoint, items }) {
  const list = () => ("items" in currentRoute() && items.list) || ("thread" in currentRoute() && thread.list) || threads.list;
  const move = (by) => {
    list().element.focus({ preventScroll: true });
    list().move(by);
  };
  return {
    down: () => move(1),
    up: () => move(-1),
    search: () => {
      if ("items" in currentRoute()) return items.search();
      document.body.dataset.shows = "threads";
      threads.search();
    },
    find: () => thread.search(),
    jump: () => thread.jump(),
    tree: () =>
      "thread" in currentRoute() && go(changed({ list: currentRoute().list === "tree" ? "timeline" : "tree" })),
    view: (key) => checkpoint.current && go(changed({ view: VIEWS[Number(key) - 1], path: null })),
    parent: () => checkpoint.walk(true),
    next: () => checkpoint.walk(false),
    config: () => checkpoint.copyConfig(),
    compare: () => checkpoint.compare(),
    back: () =>
      "items" in currentRoute()
        ? go("key" in currentRoute() ? address({ items: currentRoute().items }) : "#")
        : "at" in currentRoute()
        ? go(changed({ at: null, ns: null, against: null, path: null }))
        : go(listingAddress()),
    keys: showKeys,
  };
}

begin().catch((error) => place("thread").replaceChildren(failure(error, () => location.reload())));
