// One thread: what it is, its checkpoints as a timeline, as a tree or searched, and its following while it runs.

import { Latest } from "./api.js";
import { button, el } from "./dom.js";
import { ago, bytes, counted, exactTime, namespaceName } from "./format.js";
import { chooseCheckpoint } from "./jump.js";
import { failure, nothing, waiting } from "./messages.js";
import { toQuery } from "./query.js";
import { changed, checkpointAddress, go, listingAddress } from "./route.js";
import { Search } from "./search.js";
import { Timeline } from "./timeline.js";
import { Tree } from "./tree.js";

const VIEWS = { timeline: Timeline, tree: Tree, search: Search };
const TABS = { timeline: "Timeline", tree: "Tree", search: "Search" };

export class Thread {
  #latest = new Latest();
  #pane;
  #current;
  #changed;
  #told;
  #id; // undefined until the first route
  #thread = null;
  #view = null;
  #shown = null;
  #source = null;
  #isGone = false;
  #route = {};
  #takesFocus = false; // who came here from the listing goes on with the same keys
  #head = el("header.pane-head");
  #place = el("div.view-place");
  #live = el("span.live", { role: "status" });

  /** `current` gives the checkpoint that is shown; `hasChanged` is told the newest checkpoints of the
   *  thread, `told` what the thread is like now. */
  constructor(pane, { current, hasChanged, told }) {
    this.#pane = pane;
    this.#current = current;
    this.#changed = hasChanged;
    this.#told = told;
    document.addEventListener("visibilitychange", () => this.#seenOrNot());
  }

  /** The list that keys move through, or null. */
  get list() {
    return this.#view?.list ?? null;
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
            "Its checkpoints appear here. The key ? shows how to get around without a mouse.",
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
    this.#follow();
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
        el("h2", { title: name }, name || "(no name)"),
        this.#live,
        el("span.push"),
        this.#jumpButton(),
      ),
      el(
        "p.facts",
        {},
        thread.status !== "idle" && el("span.word", { "data-status": thread.status }, thread.status),
        thread.title !== null && el("span.code.id", { title: "Thread id" }, thread.id),
        el("span", {}, counted(thread.checkpoints, "checkpoint")),
        el("span", {}, bytes(thread.size_bytes)),
        thread.owner !== null && el("span", { title: "Owner" }, thread.owner),
        el("time", { datetime: thread.updated_at, title: exactTime(thread.updated_at) }, ago(thread.updated_at)),
        thread.expires_at !== null && el("span", { title: exactTime(thread.expires_at) }, "expires"),
      ),
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
      el("option", { value: `=${ns}`, selected: ns === chosen }, namespaceName(ns)),
    );
    const select = el(
      "select.namespaces",
      { "aria-label": "Namespace" },
      el("option", { value: "", selected: chosen === null }, "Namespaces"),
      ...options,
    );
    select.addEventListener("change", () => go(changed({ in: select.value ? select.value.slice(1) : null })));
    return select;
  }

  // A browser has six connections to a server for all tabs together: one that nobody sees must not hold any.
  #seenOrNot() {
    if (document.hidden) this.#source?.close();
    else if (this.#source?.readyState === EventSource.CLOSED && !this.#isGone) {
      this.#follow();
      const { ns = "", at } = this.#route;
      this.#onChange({ newest: { [ns]: at } }); // nobody has told what happened in between
    }
  }

  #follow() {
    const source = new EventSource(`/api/live?${toQuery({ thread: this.#id })}`);
    this.#source = source;
    const say = (state, text) => {
      this.#live.dataset.state = state;
      this.#live.textContent = text;
    };
    say("begins", "");
    if (document.hidden) source.close();
    source.addEventListener("open", () => say("live", "live"));
    source.addEventListener("error", () => say("lost", "not connected"));
    source.addEventListener("gone", () => {
      say("lost", "deleted");
      this.#isGone = true;
      source.close();
    });
    source.addEventListener("change", (event) => this.#onChange(JSON.parse(event.data)));
  }

  async #onChange({ newest }) {
    this.#changed(newest);
    try {
      this.#thread = await this.#latest.get("thread", { thread: this.#id });
    } catch {
      return; // the live stream says by itself if the thread is gone
    }
    this.#drawHead();
    this.#told(this.#thread);
    this.#view?.refresh(this.#thread.checkpoints)?.catch?.(() => {}); // tried again with the next change
  }

  #forget() {
    this.#latest.cancel();
    this.#source?.close();
    this.#source = null;
    this.#isGone = false;
    this.#view?.close();
    this.#view = null;
    this.#shown = null;
  }
}

function back() {
  return el("a.back", { href: listingAddress() }, "All threads");
}
