// The dialogs that change something: a fork of a checkpoint, and its restoring. There are none without --write.

import { objectOf, post } from "./api.js";
import { button, el } from "./dom.js";
import { stepName } from "./format.js";
import { closing, failure, toast } from "./messages.js";
import { address, checkpointAddress, go } from "./route.js";

const AGAIN = "If you run the thread from there, the later nodes run again, with all their side effects.";

/** Asks for the arguments of a fork, forks, and shows the new checkpoint. */
export function fork({ thread, checkpoint }) {
  const name = el("input", {
    type: "text",
    name: "as_thread",
    "aria-label": "Id of the new thread",
    placeholder: `${thread}-fork`,
    spellcheck: "false",
  });
  const values = el("div.new-values");
  const channels = checkpoint.channels.map((channel) => channel.name);
  const add = button("Change a channel", {
    onclick: () => values.append(newValue(channels)),
    disabled: !channels.length,
  });
  ask({
    title: `Fork from ${stepName(checkpoint)}`,
    action: "Fork",
    content: [
      el(
        "fieldset",
        {},
        el("legend", {}, "Create"),
        choice("branch", "a branch of this thread, which your next run continues"),
        choice("thread", "a new thread", name),
      ),
      values,
      add,
      el("p.faint", {}, AGAIN),
    ],
    async act(form) {
      const asThread = form.elements.as.value === "thread" ? name.value || name.placeholder : undefined;
      const body = { ...named(thread, checkpoint), values: newValues(values), as_thread: JSON.stringify(asThread) };
      show(thread, await post("fork", body), "Forked");
    },
  });
}

/** Asks whether, makes a checkpoint the newest again, and shows the new one. */
export function restore({ thread, checkpoint }) {
  ask({
    title: `Restore ${stepName(checkpoint)}`,
    action: "Restore",
    content: [
      el(
        "p",
        {},
        "You get a new checkpoint with this state, and your next run continues from it. The later checkpoints stay as a branch.",
      ),
      el("p.faint", {}, AGAIN),
    ],
    async act() {
      show(thread, await post("restore", named(thread, checkpoint)), "Restored");
    },
  });
}

function named(thread, { ns, id }) {
  return { thread: JSON.stringify(thread), ns: JSON.stringify(ns), id: JSON.stringify(id) };
}

function show(thread, { config }, done) {
  const { thread_id: other, checkpoint_ns: ns, checkpoint_id: at } = config.configurable;
  toast(done);
  go(other === thread ? checkpointAddress(ns, at, { view: "state" }) : address({ thread: other, ns, at }));
}

function ask({ title, action, content, act }) {
  const place = el("div");
  const send = el("button.primary", { type: "submit" }, action);
  const form = el(
    "form",
    {},
    el("h2", {}, title),
    ...content,
    place,
    el("div.actions", {}, closing("Cancel"), send),
  );
  const dialog = el("dialog", { "aria-label": title }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      await act(form);
      dialog.close();
    } catch (error) {
      place.replaceChildren(failure(error));
      send.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function choice(value, name, ...more) {
  const input = el("input", { type: "radio", name: "as", value, checked: value === "branch" });
  for (const field of more) field.addEventListener("focus", () => (input.checked = true));
  return el("div.choice", {}, el("label", {}, input, " ", name), ...more);
}

function newValue(channels) {
  const row = el(
    "div.new-value",
    {},
    el("select", { "aria-label": "Channel" }, ...channels.map((name) => el("option", { value: name }, name))),
    button("Remove", { onclick: () => row.remove() }),
    el("textarea.code", {
      rows: "4",
      "aria-label": "New value, as JSON",
      placeholder: 'The new value as JSON, such as "text" or [1, 2]',
      spellcheck: "false",
    }),
  );
  return row;
}

function newValues(place) {
  const rows = [...place.querySelectorAll(".new-value")];
  if (!rows.length) return undefined;
  return objectOf(
    Object.fromEntries(
      rows.map((row) => {
        const channel = row.querySelector("select").value;
        const json = row.querySelector("textarea").value;
        if (!isJson(json)) throw new Error(`The new value of ${channel} is not valid JSON. Put text in double quotes.`);
        return [channel, json];
      }),
    ),
  );
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
