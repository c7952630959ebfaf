// The writes of the next step's tasks so far: results, errors, interrupts.

import { get } from "./api.js";
import { el } from "./dom.js";
import { effectList } from "./effects.js";
import { counted, shortId } from "./format.js";
import { nothing } from "./messages.js";
import { ValueTree } from "./values.js";

const NO_TASK = /^[0-]+$/; // LangGraph's id for the input of a run, such as an answer to an interrupt
const NAMES = { error: "Error", interrupt: "Interrupt", resume: "Answer", scheduled: "Scheduled", write: null };

export class Writes {
  constructor({ thread, checkpoint }) {
    this.element = el("div.view.scrolls");
    const tasks = Map.groupBy(
      checkpoint.writes.map((write, index) => ({ ...write, index })),
      (write) => write.task_id,
    );
    const effects = effectList(checkpoint.effects);
    if (!tasks.size && !effects) {
      this.element.append(
        nothing("No writes", "You see the writes of the next step here as soon as its tasks store them."),
      );
    }
    else this.element.append(el("p.faint", {}, this.#state(checkpoint)), ...(effects ? [effects] : []));
    for (const [task, writes] of tasks) this.element.append(taskCard(thread, checkpoint, task, writes));
  }

  #state({ next_ids: next, writes, effects }) {
    if (next.length) return "The next step is stored: these are the writes that led to it.";
    const kinds = new Set(writes.map((write) => write.kind));
    if (kinds.has("error")) return "A task of the next step failed. Run the thread again to retry it.";
    if (kinds.has("interrupt") && !kinds.has("resume")) return "The next step waits for your answer.";
    if (effects.some((effect) => effect.state === "unknown"))
      return "It is not known whether a call of the next step happened. Settle it with `threadmark effects`.";
    return "Pending: the next step is not stored yet.";
  }

  show() {}

  close() {}
}

function taskCard(thread, { ns, id }, task, writes) {
  const worst = ["error", "interrupt"].find((kind) => writes.some((write) => write.kind === kind));
  const node = writes.find((write) => write.node)?.node;
  const card = el(
    "article.task",
    { "data-kind": worst ?? "write" },
    el(
      "h3",
      {},
      el("span", {}, node ?? (NO_TASK.test(task) ? "From the caller" : "Task")),
      el("span.faint.code", { title: task }, shortId(task)),
      el("span.faint.push", {}, counted(writes.length, "write")),
    ),
  );
  for (const write of writes) {
    const values = new ValueTree({
      label: `Write to ${write.channel}`,
      load: (path, offset, limit) => get("value", { thread, ns, id, write: write.index, path, offset, limit }),
    });
    const notes = NAMES[write.kind] ? [el("span.word", { "data-kind": write.kind }, NAMES[write.kind])] : [];
    values.add(write.channel, write.value, "", { notes, unfolded: write.kind !== "write" });
    card.append(values.element);
  }
  return card;
}
