// The effects of a step: the calls that its tasks make once, and their states.

import { el } from "./dom.js";
import { counted, exactTime, time } from "./format.js";

const KINDS = { unknown: "interrupt", failed: "error", running: "changed", "not done": "write", done: "resume" };
const TITLES = {
  unknown: "The call has ended without a trace: it is not known whether it happened. `threadmark effects` settles it",
  failed: "The call has raised an exception, which is raised again instead of a second call",
  running: "The call may still run",
  "not done": "The call did not happen, so the next attempt makes it",
  done: "The call has returned: its result is stored",
};

/** Returns a word about the effects of a step, for its row, in an array that is empty if it has none. */
export function effectWords(states = []) {
  return Object.keys(KINDS)
    .map((state) => [state, states.filter((each) => each === state).length])
    .filter(([, number]) => number > 0)
    .map(([state, number]) => {
      const name = state === "done" ? counted(number, "effect") : `${counted(number, "effect")} ${state}`;
      if (state === "done") return el("span.unit", { title: TITLES[state] }, name);
      return el("span.word", { "data-kind": KINDS[state], title: TITLES[state] }, name);
    });
}

/** Returns the list of a step's effects, null if it has none. */
export function effectList(effects) {
  if (!effects.length) return null;
  const worst = ["unknown", "failed"].find((state) => effects.some((effect) => effect.state === state));
  return el(
    "article.task.effects",
    { "data-kind": worst ? KINDS[worst] : "write" },
    el("h3", {}, el("span", {}, "Effects"), el("span.faint.push", {}, counted(effects.length, "call"))),
    el("ul", {}, ...effects.map((effect) => el("li", {}, ...parts(effect)))),
  );
}

function parts({ name, state, key, claimed_at: begun, settled_at: settled, node, holder, error, undo }) {
  return [
    el(
      "p.effect",
      {},
      el("strong", {}, name),
      el("span.word", { "data-kind": KINDS[state], title: TITLES[state] }, state),
      node && el("span.faint", {}, node),
      el("time.faint.push", { datetime: begun, title: `Begun ${exactTime(begun)} by ${holder}` }, time(begun)),
      settled && el("time.faint", { datetime: settled, title: `Ended ${exactTime(settled)}` }, `to ${time(settled)}`),
    ),
    error && el("p", {}, error),
    el("p.faint", {}, "key ", el("span.code.id", { title: "Idempotency key" }, key), undo && ` undo with ${undo}`),
  ];
}
