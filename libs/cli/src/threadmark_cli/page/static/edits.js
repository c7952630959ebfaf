// Two texts side by side, with the differences marked.

import { button, el } from "./dom.js";
import { count } from "./format.js";

const AROUND = 3; // equal lines before and after a change

/** Returns the texts that edits lead from and to: [["equal" | "removed" | "added", text], ...].
 *  ["left_out", "123"] stands for so many equal characters that were not sent. */
export function sideBySide(edits) {
  const sides = el("div.sides.texts");
  if (edits.some(([, text]) => text.includes("\n"))) {
    for (const each of runs(edits)) {
      if (each.leftOut !== undefined) sides.append(el("div.equal-lines.faint", {}, leftOut(each.leftOut)));
      else if (each.equal !== undefined) sides.append(...equalLines(each.equal));
      else sides.append(...changedLines(each.removed, each.added));
    }
  } else {
    sides.append(oneLine(edits, "removed", "del"), oneLine(edits, "added", "ins"));
  }
  return sides;
}

function oneLine(edits, side, mark) {
  const pieces = edits.map(([kind, text]) => {
    if (kind === "left_out") return el("span.faint", {}, ` … ${leftOut(text)} … `);
    if (kind === "equal") return text;
    return kind === side ? el(mark, {}, text) : null;
  });
  return el("pre.side.text", {}, ...pieces);
}

/** Joins lines removed and added in the same place. */
function runs(edits) {
  const found = [];
  for (const [kind, text] of edits) {
    const last = found.at(-1);
    if (kind === "left_out") found.push({ leftOut: text });
    else if (kind === "equal") found.push({ equal: text });
    else if (last && "removed" in last) last[kind] += text;
    else found.push({ removed: "", added: "", [kind]: text });
  }
  return found;
}

function leftOut(characters) {
  return `${count(Number(characters))} unchanged characters`;
}

function equalLines(text) {
  const lines = linesOf(text);
  if (lines.length <= 2 * AROUND + 2) return pair(text, text);
  const middle = lines.slice(AROUND, -AROUND).join("");
  const more = el(
    "div.equal-lines",
    {},
    button(`Show ${lines.length - 2 * AROUND} unchanged lines`, {
      onclick: () => more.replaceWith(...pair(middle, middle)),
    }),
  );
  const start = lines.slice(0, AROUND).join("");
  const end = lines.slice(-AROUND).join("");
  return [...pair(start, start), more, ...pair(end, end)];
}

function changedLines(removed, added) {
  const before = linesOf(removed);
  const after = linesOf(added);
  const left = [];
  const right = [];
  for (let index = 0; index < Math.max(before.length, after.length); index += 1) {
    const [one, other] = marked(before[index], after[index]);
    left.push(...one);
    right.push(...other);
  }
  return [
    el(removed ? "pre.side.text.removed" : "pre.side.text.absent", {}, ...left),
    el(added ? "pre.side.text.added" : "pre.side.text.absent", {}, ...right),
  ];
}

/** Marks the words in which a line differs from the one that took its place. */
function marked(before, after) {
  if (before === undefined) return [[], [el("ins", {}, after)]];
  if (after === undefined) return [[el("del", {}, before)], []];
  const old = words(before);
  const now = words(after);
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const split = (all, mark) => {
    const middle = all.slice(start, all.length - end).join("");
    return [all.slice(0, start).join(""), middle && el(mark, {}, middle), all.slice(all.length - end).join("")];
  };
  return [split(old, "del"), split(now, "ins")].map((parts) => parts.filter(Boolean));
}

function pair(before, after) {
  return [el("pre.side.text", {}, before), el("pre.side.text", {}, after)];
}

function words(text) {
  return text.match(/\s+|[^\s]+/g) ?? [];
}

function linesOf(text) {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
