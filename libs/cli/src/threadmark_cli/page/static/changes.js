// The differences between a checkpoint and its parent, or any other one of its namespace.

import { Latest, get } from "./api.js";
import { button, el } from "./dom.js";
import { sideBySide } from "./edits.js";
import { bytes, channelPath, counted, isInternal, shortId, stepName } from "./format.js";
import { chooseCheckpoint } from "./jump.js";
import { failure, nothing, waiting } from "./messages.js";
import { changed, go } from "./route.js";
import { ValueTree } from "./values.js";

const FIRST = 200;

export class Changes {
  #latest = new Latest();
  #thread;
  #checkpoint;
  #against = null;
  #opened;
  #place = el("div.changes");
  #head = el("div.tools");

  constructor({ thread, checkpoint, opened }) {
    this.#thread = thread;
    this.#checkpoint = checkpoint;
    this.#opened = opened;
    this.element = el("div.view.scrolls", {}, this.#head, this.#place);
  }

  show(route) {
    const against = route.against ?? this.#checkpoint.parent;
    if (against === this.#against && this.#place.hasChildNodes()) return;
    this.#against = against;
    this.#head.replaceChildren(...this.#tools(route));
    if (against === null) {
      this.#place.replaceChildren(
        nothing("First checkpoint", "It has no parent. You can compare it with any checkpoint of its namespace."),
      );
    } else this.#fetch(FIRST);
  }

  /** Asks with which checkpoint this one shall be compared. */
  choose() {
    const { ns, id } = this.#checkpoint;
    chooseCheckpoint({
      thread: this.#thread,
      ns,
      title: `Compare ${stepName(this.#checkpoint)} with`,
      chosen: (other) => go(changed({ ns, at: id, view: "changes", against: other.id })),
    });
  }

  close() {
    this.#latest.cancel();
  }

  #tools(route) {
    const isParent = this.#against === this.#checkpoint.parent;
    const name = this.#against === null ? "nothing" : isParent ? "its parent" : shortId(this.#against);
    return [
      el("span", {}, "Compared with ", el("strong", { title: this.#against }, name)),
      "against" in route &&
        this.#checkpoint.parent !== null &&
        button("Parent", { onclick: () => go(changed({ against: null })) }),
      button("Compare with…", { icon: "compare", onclick: () => this.choose() }),
    ].filter(Boolean);
  }

  async #fetch(limit) {
    this.#place.replaceChildren(waiting());
    const { ns, id } = this.#checkpoint;
    try {
      const diff = await this.#latest.get("diff", { thread: this.#thread, ns, a: this.#against, b: id, limit });
      this.#place.replaceChildren(...this.#shown(diff, limit));
    } catch (error) {
      this.#place.replaceChildren(failure(error, () => this.#fetch(limit)));
    }
  }

  #shown(diff, limit) {
    // A snapshot on one side alone says nothing: the channel has a value on both.
    const deltas = this.#checkpoint.channels.filter(({ delta }) => delta).map(({ name }) => name);
    const isSnapshot = ({ path, kind }) => kind !== "changed" && deltas.some((name) => channelPath(name) === path);
    const changes = diff.changes.filter((change) => !isSnapshot(change));
    const own = changes.filter(({ path }) => !isInternal(path));
    const internal = changes.filter(({ path }) => isInternal(path));
    const found = [...own, ...internal].map((each) => this.#change(each));
    const uncompared = deltas.filter((name) => !changes.some(({ path }) => isIn(path, channelPath(name))));
    if (!found.length) {
      const which = uncompared.length ? "All values that can be compared are" : "All values are";
      found.push(nothing("No changes", `${which} the same in both checkpoints.`));
    } else
      found.unshift(
        el("div.sides.headings", { "aria-hidden": "true" }, el("span", {}, "Before"), el("span", {}, "After")),
      );
    if (diff.left_out) {
      found.push(
        button(`Show ${counted(diff.left_out, "more change")}`, { onclick: () => this.#fetch(limit * 5) }),
      );
    }
    found.push(
      ...chips("Unchanged", diff.equal.filter((name) => !deltas.includes(name))),
      ...chips("Kept as changes, not compared (see State)", uncompared),
    );
    if (diff.bytes_read !== null) {
      found.push(el("p.faint", {}, `The server read ${bytes(diff.bytes_read)} of values for this comparison.`));
    }
    return found;
  }

  #change({ path, kind, before, after, edits }) {
    const nodes = this.#checkpoint.writers?.find((each) => isIn(path, each.channel))?.nodes ?? [];
    return el(
      "article.change",
      { "data-kind": kind, "aria-label": `${kind}: ${path}` },
      el(
        "h3",
        {},
        el("span.word", { "data-kind": kind }, kind),
        el("span.code", { title: path }, path),
        nodes.length > 0 && el("span.faint", {}, `by ${nodes.join(", ")}`),
      ),
      edits.length
        ? sideBySide(edits)
        : el(
            "div.sides",
            {},
            this.#side(kind !== "added" && before, path, this.#against),
            this.#side(kind !== "removed" && after, path, this.#checkpoint.id),
          ),
    );
  }

  #side(node, path, id) {
    const isBefore = id === this.#against;
    if (!node)
      return el("div.side.absent", {}, el("span.faint", {}, isBefore ? "no value before" : "no value after"));
    const values = new ValueTree({
      label: isBefore ? "Before" : "After",
      opened: this.#opened,
      load: (at, offset, limit) =>
        get("value", { thread: this.#thread, ns: this.#checkpoint.ns, id, path: at, offset, limit }),
    });
    values.add(lastStep(path), node, path);
    return el(isBefore ? "div.side.removed" : "div.side.added", {}, values.element);
  }
}

/** Returns a line with the names of channels, in an array that is empty if there are none. */
function chips(what, names) {
  if (!names.length) return [];
  return [
    el("p.equal.faint", {}, `${what}: `, ...names.flatMap((name) => [el("span.chip", {}, name), " "])),
  ];
}

function isIn(path, channel) {
  return path === channel || path.startsWith(`${channel}.`) || path.startsWith(`${channel}[`);
}

/** `messages[3].content` -> `content`; `messages[3]` -> `[3]` */
function lastStep(path) {
  return /(\[(?:-?\d+|"(?:[^"\\]|\\.)*")\]|[^.[\]]+)$/.exec(path)?.[1] ?? path;
}
