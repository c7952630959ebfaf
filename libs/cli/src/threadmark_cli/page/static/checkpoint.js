// One checkpoint: its name, and the views of its state, its changes, its pending writes and its metadata.

import { Latest } from "./api.js";
import { Changes } from "./changes.js";
import { button, el } from "./dom.js";
import { namespaceWord } from "./entries.js";
import { fork, restore } from "./fork.js";
import { configAsPython, count, exactTime, stepName, time } from "./format.js";
import { copy, failure, nothing, waiting } from "./messages.js";
import { changed, checkpointAddress, go, threadAddress } from "./route.js";
import { State } from "./state.js";
import { ValueTree, fromJson } from "./values.js";
import { Writes } from "./writes.js";

const VIEWS = { state: State, changes: Changes, writes: Writes };

export class Checkpoint {
  #latest = new Latest();
  #pane;
  #canWrite;
  #told;
  #opened = new Map();
  #thread = null;
  #wanted = null;
  #checkpoint = null;
  #view = null;
  #viewName = null;
  #drawnFor = null;
  #opensOn = null; // the view of a checkpoint for which the route names none
  #route = {};

  /** `told` is called whenever the pane shows a checkpoint. */
  constructor(pane, { canWrite, told }) {
    this.#pane = pane;
    this.#canWrite = canWrite;
    this.#told = told;
  }

  /** The open checkpoint, or null. */
  get current() {
    return this.#checkpoint;
  }

  /** Shows the checkpoint of a route: a named one, or the newest one. */
  show(route) {
    const path = route.path !== this.#route.path && route.path !== undefined;
    this.#route = route;
    const wanted = "thread" in route ? JSON.stringify([route.thread, route.ns ?? "", route.at ?? null]) : null;
    if (wanted === this.#wanted) {
      if (this.#checkpoint) this.#showView(path);
      return;
    }
    if (route.thread !== this.#thread) {
      this.#opened = new Map();
      this.#thread = route.thread;
      this.#checkpoint = null;
      this.#pane.replaceChildren();
    }
    this.#wanted = wanted;
    this.#opensOn = null;
    if (wanted !== null) this.#fetch();
  }

  /** Fetches it again, if it may have changed: the newest one is followed, others may have new writes. */
  refresh(newest) {
    if (this.#wanted === null) return;
    const { ns = "", at } = this.#route;
    if (at === undefined || newest[ns] === at || !this.#checkpoint) this.#fetch();
  }

  async #fetch() {
    const { thread, ns = "", at = null } = this.#route;
    if (!this.#checkpoint) this.#pane.replaceChildren(waiting());
    try {
      const found = await this.#latest.get("checkpoint", { thread, ns, id: at });
      const isSame = JSON.stringify(found) === JSON.stringify(this.#checkpoint);
      this.#checkpoint = found;
      this.#opensOn ??= hasFailed(found) ? "writes" : "state";
      if (!isSame || !this.#view || this.#drawnFor !== at) this.#draw();
      this.#drawnFor = at;
    } catch (error) {
      this.#checkpoint = null;
      this.#view = null;
      if (error.kind === "not_found" && at === null)
        this.#pane.replaceChildren(
          nothing("No checkpoint yet", "You see the newest checkpoint here as soon as your graph stores one."),
        );
      else
        this.#pane.replaceChildren(
          this.#back(),
          failure(error, () => this.#fetch()),
        );
    }
    this.#told();
  }

  #draw() {
    const focused = this.#pane.contains(document.activeElement) && document.activeElement.dataset.path;
    const top = this.#pane.querySelector(".scrolls")?.scrollTop ?? 0;
    this.#view?.close();
    this.#view = null;
    this.#pane.replaceChildren(this.#head(), el("div.view-place"));
    this.#showView(false);
    const scrolls = this.#pane.querySelector(".scrolls");
    if (scrolls && !this.#route.path) scrolls.scrollTop = top;
    if (focused) this.#pane.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #showView(again) {
    const name = this.#route.view ?? this.#opensOn ?? "state";
    if (again || !this.#view || name !== this.#viewName) {
      this.#view?.close();
      this.#viewName = name;
      const View = VIEWS[name] ?? About;
      this.#view = new View({
        thread: this.#thread,
        checkpoint: this.#checkpoint,
        opened: this.#opened,
        route: this.#route,
      });
      this.#pane.querySelector(".view-place").replaceChildren(this.#view.element);
    }
    for (const tab of this.#pane.querySelectorAll(".tabs a")) {
      if (tab.dataset.view === name) tab.setAttribute("aria-current", "true");
      else tab.removeAttribute("aria-current");
      tab.href = changed({ view: tab.dataset.view, path: null });
    }
    this.#view.show(this.#route);
  }

  #back() {
    return el(
      "a.back",
      { href: changed({ at: null, ns: null, view: null, path: null, against: null }) },
      "All checkpoints",
    );
  }

  #head() {
    const { ns, id, nodes, source, created_at: created, metadata } = this.#checkpoint;
    const isFollowed = !("at" in this.#route);
    return el(
      "header.pane-head",
      {},
      this.#back(),
      el(
        "div.title-line",
        {},
        el(
          "h2",
          {},
          stepName(this.#checkpoint),
          el("span.by", {}, nodes.length ? nodes.join(", ") : (source ?? "")),
        ),
        isFollowed &&
          el(
            "span.tag",
            { "data-kind": "newest", title: "You see each new checkpoint as soon as it is stored" },
            "newest",
          ),
      ),
      el(
        "p.facts",
        {},
        el("time", { datetime: created, title: exactTime(created) }, time(created)),
        el("span.code.id", { title: "Checkpoint id" }, id),
        ns !== "" && namespaceWord(ns),
        metadata.source && nodes.length > 0 && el("span", {}, metadata.source),
      ),
      el("div.tools", {}, ...this.#tools()),
      this.#tabs(),
    );
  }

  #tools() {
    const { ns, id, parent, next_ids: next } = this.#checkpoint;
    const target = { thread: this.#thread, checkpoint: this.#checkpoint };
    return [
      step("Parent", parent && checkpointAddress(ns, parent), "["),
      ...(next.length ? next : [null])
        .slice(0, 4)
        .map((child, index) =>
          step(next.length > 1 ? `Next ${index + 1}` : "Next", child && checkpointAddress(ns, child), "]"),
        ),
      "at" in this.#route && button("Follow newest", { onclick: () => go(threadAddress(this.#thread)) }),
      el("span.push"),
      button("Copy config", {
        icon: "code",
        title: "Copy the config of this checkpoint as Python code (c)",
        onclick: () => this.copyConfig(),
        "data-action": "config",
      }),
      button("Compare…", {
        icon: "compare",
        title: "Compare this checkpoint with another one (d)",
        onclick: () => this.compare(),
        "data-action": "compare",
      }),
      this.#canWrite &&
        id &&
        button("Fork…", { icon: "branch", onclick: () => fork(target), "data-action": "fork" }),
      this.#canWrite &&
        button("Restore…", { icon: "restore", onclick: () => restore(target), "data-action": "restore" }),
    ].filter(Boolean);
  }

  #tabs() {
    const { channels, writes, effects } = this.#checkpoint;
    const tab = (view, name, number) =>
      el(
        "a",
        { href: changed({ view, path: null }), "data-view": view },
        name,
        number ? el("span.number", {}, count(number)) : null,
      );
    const kinds = new Set(writes.map((write) => write.kind));
    const tabs = [
      tab("state", "State", channels.length),
      tab("changes", "Changes"),
      tab("writes", "Writes", writes.length + effects.length),
      tab("about", "Metadata"),
    ];
    if (kinds.has("error")) tabs[2].dataset.kind = "error";
    else if (kinds.has("interrupt") || effects.some(isUnknown)) tabs[2].dataset.kind = "interrupt";
    return el("nav.tabs", { "aria-label": "Views of the checkpoint" }, ...tabs);
  }

  /** Copies the configuration that names the checkpoint. */
  copyConfig() {
    if (!this.#checkpoint) return;
    const { ns, id } = this.#checkpoint;
    copy(configAsPython({ thread: this.#thread, ns, id }), "Config");
  }

  /** Asks for the checkpoint to compare it with. */
  compare() {
    if (!this.#checkpoint) return;
    new Changes({ thread: this.#thread, checkpoint: this.#checkpoint, opened: this.#opened }).choose();
  }

  /** Goes to the parent, or to the newest child. */
  walk(back) {
    if (!this.#checkpoint) return;
    const { ns, parent, next_ids: next } = this.#checkpoint;
    const to = back ? parent : next[0];
    if (to) go(checkpointAddress(ns, to));
  }
}

/** Whether the thread stopped here with an error, or with a call of which it is not known whether it happened. */
function hasFailed({ writes, effects, next_ids: next }) {
  return !next.length && (writes.some((write) => write.kind === "error") || effects.some(isUnknown));
}

function isUnknown({ state }) {
  return state === "unknown";
}

function step(name, href, key) {
  if (!href) return el("span.step-link", { "aria-disabled": "true" }, name);
  return el("a.step-link", { href, title: `${name} (${key})` }, name);
}

/** The metadata of a checkpoint, its versions, and how code names it. */
class About {
  constructor({ thread, checkpoint, opened }) {
    const metadata = new ValueTree({ label: "Metadata", opened: new Map(opened) });
    for (const [key, value] of Object.entries(checkpoint.metadata))
      metadata.add(key, fromJson(value), null, { unfolded: true });
    const versions = checkpoint.channels.map(({ name, version }) => [
      el("dt.code", {}, name),
      el("dd.code.faint", {}, String(version ?? "")),
    ]);
    const code = configAsPython({ thread, ns: checkpoint.ns, id: checkpoint.id });
    this.element = el(
      "div.view.scrolls",
      {},
      el("h3", {}, "Metadata"),
      metadata.element,
      el("h3", {}, "Config as Python code"),
      el("pre.code.block", {}, code),
      button("Copy", { icon: "copy", onclick: () => copy(code, "Config") }),
      el("h3", {}, "Channel versions"),
      el("dl.versions", {}, ...versions),
    );
  }

  show() {}

  close() {}
}
