// A checkpoint as a row of the timeline or of the tree.

import { el } from "./dom.js";
import { effectWords } from "./effects.js";
import { bytes, count, counted, exactTime, isInternal, namespaceName, stepName, time } from "./format.js";

const KINDS = { __error__: "error", __interrupt__: "interrupt", __resume__: "resume", __scheduled__: "scheduled" };

/** The kind of a pending write: "write", or "error", "interrupt" ... by its channel. */
export function writeKind(channel) {
  return KINDS[channel] ?? "write";
}

/** Names a checkpoint in a thread. */
export function entryKey(entry) {
  return `${entry.ns}\n${entry.id}`;
}

/** Returns the name of a step and of its nodes, in a line with its time. */
export function stepLine(entry, { words = [], written = time } = {}) {
  const nodes = entry.nodes?.join(", ");
  return el(
    "span.row-line",
    {},
    el("span.step", {}, stepName(entry)),
    nodes ? el("span.row-title", { title: nodes }, nodes) : el("span.row-title.faint", {}, entry.source ?? ""),
    ...words,
    el("time.faint", { datetime: entry.created_at, title: exactTime(entry.created_at) }, written(entry.created_at)),
  );
}

/** Returns a namespace as a word, short; its whole name is its title. */
export function namespaceWord(ns) {
  return el("span.row-ns", { title: `Namespace ${ns}` }, namespaceName(ns));
}

/** Returns the changes of a step and the writes of its tasks, in a line. `isOver` if a checkpoint follows. */
export function factsLine(entry, { isOver = false } = {}) {
  const changed = entry.changed.filter((name) => !isInternal(name)).join(", ");
  return el(
    "span.row-line.faint",
    {},
    ...problemWord(entry),
    ...writeWords(entry.writes, isOver),
    ...effectWords(entry.effects),
    entry.ns !== "" && namespaceWord(entry.ns),
    el("span.row-changed", { title: `Changed: ${entry.changed.join(", ")}` }, changed),
    el("span.size", {}, bytes(entry.size_bytes)),
  );
}

/** Returns the words that must not be overlooked: damage, errors, interrupts. */
export function warnings(entry) {
  const kinds = new Set(entry.writes.map((write) => writeKind(write.channel)));
  const words = ["error", "interrupt"].filter((kind) => kinds.has(kind));
  return [...problemWord(entry), ...words.map((kind) => el("span.word", { "data-kind": kind }, kind))];
}

function problemWord({ problem }) {
  return problem ? [el("span.word", { "data-kind": "error", title: problem.problem }, problem.kind)] : [];
}

function writeWords(writes, isOver) {
  const numbers = new Map();
  for (const write of writes) {
    const kind = writeKind(write.channel);
    numbers.set(kind, (numbers.get(kind) ?? 0) + 1);
  }
  return ["error", "interrupt", "resume", "scheduled", "write"]
    .filter((kind) => numbers.has(kind))
    .map((kind) => {
      const number = numbers.get(kind);
      if (kind === "write" && isOver) {
        return el("span.unit", { title: "Written by the next step's tasks, and stored" }, counted(number, "write"));
      }
      const name = kind === "write" ? "pending" : kind;
      return el(
        "span.word",
        { "data-kind": kind },
        number > 1 || kind === "write" ? `${count(number)} ${name}` : name,
      );
    });
}
