// What differs between a checkpoint and its parent, or any other one of its namespace.

import { Latest, get } from "./api.js";
import { button, el } from "./dom.js";
import { sideBySide } from "./edits.js";
import { bytes, counted, isInternal, shortId, stepName } from "./format.js";
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
    const own = diff.changes.filter(({ path }) => !isInternal(path));
    const internal = diff.changes.filter(({ path }) => isInternal(path));
    const found = [...own, ...internal].map((each) => this.#change(each));
    if (!found.length) found.push(nothing("No changes", "All values are the same in both checkpoints."));
    else
      found.unshift(
        el("div.sides.headings", { "aria-hidden": "true" }, el("span", {}, "Before"), el("span", {}, "After")),
      );
    if (diff.left_out) {
      found.push(
        button(`Show ${counted(diff.left_out, "more change")}`, { onclick: () => this.#fetch(limit * 5) }),
      );
    }
    if (diff.equal.length)
      found.push(
        el("p.equal.faint", {}, "Unchanged: ", ...diff.equal.flatMap((name) => [el("span.chip", {}, name), " "])),
      );
    const deltas = this.#checkpoint.channels
      .filter(({ name, node }) => node.t === "changes" && this.#checkpoint.changed.includes(name))
      .map(({ name }) => [el("span.chip", {}, name), " "]);
    if (deltas.length)
      found.push(el("p.equal.faint", {}, "Kept as changes, not compared (see State): ", ...deltas.flat()));
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

function isIn(path, channel) {
  return path === channel || path.startsWith(`${channel}.`) || path.startsWith(`${channel}[`);
}

/** `messages[3].content` -> `content`; `messages[3]` -> `[3]` */
function lastStep(path) {
  return /(\[(?:-?\d+|"(?:[^"\\]|\\.)*")\]|[^.[\]]+)$/.exec(path)?.[1] ?? path;
}
