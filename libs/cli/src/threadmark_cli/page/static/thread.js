// One thread: its name, its checkpoints as a timeline, as a tree or searched, and its following while it runs.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { ago, bytes, counted, exactTime, namespaceName } from "./format.js";
import { chooseCheckpoint } from "./jump.js";
import { failure, nothing, waiting } from "./messages.js";
import { changed, checkpointAddress, go, listingAddress } from "./route.js";
import { Search } from "./search.js";
import { Timeline } from "./timeline.js";
import { Tree } from "./tree.js";
import { waitingTasks } from "./waiting.js";

const VIEWS = { timeline: Timeline, tree: Tree, search: Search };
const TABS = { timeline: "Timeline", tree: "Tree", search: "Search" };
const LIVE = { begins: "", live: "live", lost: "not connected", gone: "deleted" };
const LIVE_TITLES = {
  begins: "",
  live: "You see changes to this thread as they are stored",
  lost: "You do not see new changes: the server does not answer. The page tries again",
  gone: "This thread was deleted while you looked at it",
};

export class Thread {
  #latest = new Latest();
  #pane;
  #current;
  #changed;
  #told;
  #opened;
  #id; // undefined until the first route
  #thread = null;
  #view = null;
  #shown = null;
  #ofWaits = new Latest();
  #waits = [];
  #waitsFor = null;
  #route = {};
  #takesFocus = false; // who came here from the listing goes on with the same keys
  #head = el("header.pane-head");
  #place = el("div.view-place");
  #live = el("span.live", { role: "status" });

  /** `current` gives the open checkpoint; `hasChanged` gets the newest checkpoints of the
   *  thread, `told` the thread's present state; `opened` is called when there is a thread to follow. */
  constructor(pane, { current, hasChanged, told, opened }) {
    this.#pane = pane;
    this.#current = current;
    this.#changed = hasChanged;
    this.#told = told;
    this.#opened = opened;
  }

  /** The list that keys move through, or null. */
  get list() {
    return this.#view?.list ?? null;
  }

  /** The thread that can be followed, or null. */
  get followed() {
    return this.#thread?.id ?? null;
  }

  show(route) {
    this.#route = route;
    const id = route.thread ?? null;
    if (id !== this.#id) {
      this.#id = id;
      this.#takesFocus = document.activeElement?.dataset.list === "threads";
      this.#thread = null;
      this.#forget();
      if (id === null)
        return this.#pane.replaceChildren(
          nothing(
            "Choose a thread",
            "You see its checkpoints here. Press ? to see the keyboard shortcuts.",
          ),
        );
      this.#pane.replaceChildren(waiting());
      return this.#fetch();
    }
    if (this.#thread) this.#showView();
  }

  /** Shows which checkpoint is open now. */
  mark() {
    this.#view?.show(this.#route);
  }

  /** Asks for a checkpoint of the thread and goes to it. */
  jump() {
    if (!this.#thread) return;
    chooseCheckpoint({
      thread: this.#id,
      title: "Jump to a checkpoint",
      chosen: (row) => go(checkpointAddress(row.ns, row.id)),
    });
  }

  /** Puts the cursor into the search in the thread. */
  search() {
    if (!this.#thread) return;
    go(changed({ list: "search" }));
    this.#route = { ...this.#route, list: "search" };
    this.#showView();
    this.#view.focus?.();
  }

  async #fetch() {
    try {
      this.#thread = await this.#latest.get("thread", { thread: this.#id });
    } catch (error) {
      this.#pane.replaceChildren(
        back(),
        failure(error, () => this.#fetch()),
      );
      return;
    }
    this.#pane.replaceChildren(this.#head, this.#place);
    this.#drawHead();
    this.#showView();
    this.#askWhatWaits();
    this.#opened();
  }

  #showView() {
    const name = this.#route.list in VIEWS ? this.#route.list : "timeline";
    const ns = this.#route.in ?? null;
    const shown = JSON.stringify([this.#id, name, ns]);
    if (shown !== this.#shown) {
      this.#shown = shown;
      this.#view?.close();
      const newest = () => {
        const checkpoint = this.#current();
        return checkpoint && `${checkpoint.ns}\n${checkpoint.id}`;
      };
      this.#view = new VIEWS[name]({ thread: this.#id, ns, total: this.#thread.checkpoints, newest });
      this.#place.replaceChildren(this.#view.element);
      if (this.#takesFocus) this.list?.element.focus({ preventScroll: true });
      this.#takesFocus = false;
    }
    this.#drawHead();
    this.#view.show(this.#route);
  }

  #drawHead() {
    const thread = this.#thread;
    const name = thread.title ?? thread.id;
    this.#head.replaceChildren(
      back(),
      el(
        "div.title-line",
        {},
        el("h2", { title: name }, name || "(empty id)"),
        this.#live,
        el("span.push"),
        this.#jumpButton(),
      ),
      el(
        "p.facts",
        {},
        thread.status !== "idle" && el("span.word", { "data-status": thread.status }, thread.status),
        thread.next.length > 0 && el("span.next", { title: "The nodes that are still to run" }, `next: ${thread.next.join(", ")}`),
        thread.title !== null && el("span.code.id", { title: "Thread id" }, thread.id),
        el("span", {}, counted(thread.checkpoints, "checkpoint")),
        el("span", {}, bytes(thread.size_bytes)),
        thread.owner !== null && el("span", { title: "Owner" }, thread.owner),
        el("time", { datetime: thread.updated_at, title: `Last used ${exactTime(thread.updated_at)}` }, ago(thread.updated_at)),
        thread.expires_at !== null && el("span", { title: `Retention may remove this thread after ${exactTime(thread.expires_at)}` }, "expires"),
      ),
      ...waitingTasks(this.#waits),
      this.#tools(),
    );
  }

  #jumpButton() {
    return button("", {
      icon: "jump",
      label: "Jump to a checkpoint",
      title: "Jump to a checkpoint (g)",
      onclick: () => this.jump(),
      "data-action": "jump",
    });
  }

  #tools() {
    const now = this.#route.list in VIEWS ? this.#route.list : "timeline";
    const tabs = Object.entries(TABS).map(([list, name]) => {
      return el(
        "a",
        { href: changed({ list }), "data-list": list, "aria-current": list === now ? "true" : null },
        name,
      );
    });
    return el(
      "div.tabs-line",
      {},
      el("nav.tabs", { "aria-label": "Views of the thread" }, ...tabs),
      this.#namespaces(),
    );
  }

  #namespaces() {
    const { namespaces } = this.#thread;
    if (namespaces.length < 2) return null;
    const chosen = this.#route.in ?? null;
    const options = namespaces.map((ns) =>
      el("option", { value: `=${ns}`, title: ns, selected: ns === chosen }, namespaceName(ns)),
    );
    const select = el(
      "select.namespaces",
      { "aria-label": "Namespace", title: chosen ?? "Show one namespace only" },
      el("option", { value: "", selected: chosen === null }, "Namespaces"),
      ...options,
    );
    select.addEventListener("change", () => go(changed({ in: select.value ? select.value.slice(1) : null })));
    return select;
  }

  /** Says how the live stream of a thread is doing. */
  said(id, state) {
    if (id !== this.#id || !(state in LIVE)) return;
    this.#live.dataset.state = state === "gone" ? "lost" : state;
    this.#live.textContent = LIVE[state];
    this.#live.title = LIVE_TITLES[state];
  }

  /** Shows possible changes from the time in which the live stream was away. */
  catchUp(id) {
    const { ns = "", at } = this.#route;
    this.changed(id, { [ns]: at });
  }

  /** Shows the changes. `newest` has the newest checkpoint of each namespace. */
  async changed(id, newest) {
    if (id !== this.#id || !this.#thread) return;
    this.#changed(newest);
    try {
      this.#thread = await this.#latest.get("thread", { thread: id });
    } catch {
      return; // the live stream says by itself if the thread is gone
    }
    this.#drawHead();
    this.#askWhatWaits();
    this.#told(this.#thread);
    this.#view?.refresh(this.#thread.checkpoints)?.catch?.(() => {}); // tried again with the next change
  }

  // Only a waiting thread has something to say, and it says the same until the thread changes.
  async #askWhatWaits() {
    const { id, status, newest, size_bytes: size } = this.#thread;
    const key = ["interrupted", "error"].includes(status) ? JSON.stringify([id, status, newest, size]) : null;
    if (key === this.#waitsFor) return;
    this.#waitsFor = key;
    this.#waits = [];
    try {
      if (key !== null) this.#waits = (await this.#ofWaits.get("waiting", { thread: id })).tasks;
    } catch {
      this.#waitsFor = undefined; // asked again with the next change
    }
    if (this.#thread?.id === id) this.#drawHead();
  }

  #forget() {
    this.#latest.cancel();
    this.#ofWaits.cancel();
    this.#waits = [];
    this.#waitsFor = null;
    this.said(this.#id, "begins");
    this.#view?.close();
    this.#view = null;
    this.#shown = null;
  }
}

function back() {
  return el("a.back", { href: listingAddress() }, "All threads");
}
