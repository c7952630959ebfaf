// The reasons why a thread waits: the questions and errors of its newest checkpoint, in the thread's head.

import { el } from "./dom.js";
import { count } from "./format.js";
import { preview, typeName } from "./previews.js";
import { checkpointAddress } from "./route.js";

const SHOWN = 3;
const ASKING = ["question", "message", "content", "prompt", "text", "value"];

/** Returns the list of tasks that wait for an answer or have failed, in an array that is empty if there are none. */
export function waitingTasks(tasks) {
  if (!tasks.length) return [];
  const more = tasks.length - SHOWN;
  const list = el(
    "ul.waits",
    { "aria-label": "What the thread waits for" },
    ...tasks.slice(0, SHOWN).map((task) => el("li", {}, line(task))),
    more > 0 && el("li.faint", {}, `and ${count(more)} more`),
  );
  return [list];
}

function line({ kind, nodes, ns, id, value }) {
  const isError = kind === "error";
  const texts = isError ? [fault(value)] : questions(value);
  const node = nodes.join(" › ") || "a task";
  return el(
    "a.wait",
    { href: checkpointAddress(ns, id, { view: "writes" }), "data-kind": kind, title: texts.join("\n") },
    el("strong", {}, node),
    isError ? " failed: " : " waits for your answer: ",
    texts.join(" "),
  );
}

/** The questions of interrupts. LangGraph keeps them as a list of objects, each with a value. */
function questions(node) {
  const asked = node.items ?? [node];
  return asked.map((each) => said(each.entries?.find(([name]) => name === "value")?.[1] ?? each));
}

/** The text of a value: a text as it is, and of a dictionary the part that reads like a question. */
function said(node) {
  if (node.t === "str") return node.v;
  const parts = (node.entries ?? []).map(([key, part]) => [key.v ?? key, part]);
  const text = ASKING.map((name) => parts.find(([key, part]) => key === name && part.t === "str")).find(Boolean);
  return text ? text[1].v : preview(node);
}

/** An error with its message, as Python writes it. */
function fault(node) {
  const args = node.entries?.find(([name]) => name === "args")?.[1];
  const first = args?.items?.[0];
  if (first?.t === "str") return `${typeName(node)}: ${first.v}`;
  return node.t === "str" ? node.v : preview(node);
}
