// The lanes of a tree's branches: each goes from the branch's head down to the fork.

import { svg } from "./dom.js";
import { entryKey } from "./entries.js";

const COLOURS = 8;
const MOST = 12; // lanes that are drawn; further branches share the last one
const WIDTH = 14;

export class Lanes {
  #spans;
  #places;
  #rowHeight;

  /** Takes branches, and the rows of their checkpoints. Branches without rows in common may have the same lane. */
  constructor({ branches, rows }, rowHeight) {
    this.#rowHeight = rowHeight;
    this.#places = new Map(rows.map((row, place) => [entryKey(row), place]));
    this.#spans = branches.map((branch, index) => {
      const place = (id) => this.#places.get(entryKey({ ns: branch.ns, id }));
      const from = place(branch.head);
      const start = place(branch.start) ?? rows.length; // older than the drawn rows
      const fork = branch.forked_from === null ? undefined : place(branch.forked_from);
      const parent = fork === undefined ? null : rows[fork].branch;
      return { index, from, start, to: Math.max(fork ?? start, start), fork, parent, lane: 0 };
    });
    this.count = assign(this.#spans);
  }

  /** The width of the drawing in pixels. */
  get width() {
    return Math.min(this.count, MOST) * WIDTH + 6;
  }

  /** The colour of a branch, from 0. */
  colour(branch) {
    return branch % COLOURS;
  }

  /** Draws the lanes through the row of a checkpoint. */
  draw(checkpoint) {
    const row = this.#places.get(entryKey(checkpoint));
    const { branch } = checkpoint;
    const height = this.#rowHeight;
    const drawing = svg("svg.lanes", { width: this.width, height, "aria-hidden": "true" });
    for (const span of this.#spans) {
      if (span.from <= row && row <= span.to) drawing.append(...this.#lines(span, row));
    }
    const { lane, from } = this.#spans[branch];
    const dot = { cx: middle(lane), cy: height / 2, r: from === row ? 4.5 : 3.5 };
    drawing.append(svg(`circle.lane-${this.colour(branch)}`, { ...dot, "data-head": from === row }));
    return drawing;
  }

  #lines(span, row) {
    const height = this.#rowHeight;
    const x = middle(span.lane);
    const top = span.from === row ? height / 2 : 0;
    const name = `path.lane-${this.colour(span.index)}`;
    if (row === span.fork) {
      const to = middle(this.#spans[span.parent].lane);
      return [svg(name, { d: `M${x} 0C${x} ${height / 2} ${to} 0 ${to} ${height / 2}` })];
    }
    const end = row === span.start && span.fork === undefined ? height / 2 : height;
    return end > top ? [svg(name, { d: `M${x} ${top}V${end}` })] : [];
  }
}

function middle(lane) {
  return Math.min(lane, MOST - 1) * WIDTH + WIDTH / 2 + 3;
}

/** Gives each span the first lane that is free in its rows, and returns how many lanes there are. */
function assign(spans) {
  const ends = [];
  for (const span of [...spans].sort((one, other) => one.from - other.from)) {
    const free = ends.findIndex((end) => end < span.from);
    span.lane = free < 0 ? ends.length : free;
    ends[span.lane] = span.to;
  }
  return ends.length;
}
