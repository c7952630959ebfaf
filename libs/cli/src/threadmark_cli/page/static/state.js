// The state that a checkpoint holds: its channels, and who wrote them.

import { get } from "./api.js";
import { el } from "./dom.js";
import { channelPath, counted, isInternal, stepName, time } from "./format.js";
import { failure, nothing } from "./messages.js";
import { isContainer } from "./previews.js";
import { checkpointAddress } from "./route.js";
import { ValueTree } from "./values.js";

const UNFOLDED = 12; // a container of so many parts is unfolded from the start

export class State {
  constructor({ thread, checkpoint, opened, route }) {
    this.element = el("div.view.scrolls");
    if (checkpoint.problem) {
      this.element.append(
        failure({ kind: "failed", message: `${checkpoint.problem.kind}: ${checkpoint.problem.location}: ${checkpoint.problem.problem}` }),
      );
    }
    const internal = checkpoint.channels.filter(({ name }) => isInternal(name));
    const own = checkpoint.channels.filter(({ name }) => !isInternal(name));
    const lead = (channels) => channels.some((channel) => route.path?.startsWith(channelPath(channel.name)));
    if (own.length) this.element.append(tree({ thread, checkpoint, opened, route, label: "State" }, own));
    else if (!checkpoint.problem)
      this.element.append(nothing("Empty state", "No channel of your graph has a value in this checkpoint."));
    if (internal.length) {
      const more = tree({ thread, checkpoint, opened, route, label: "Internal channels" }, internal);
      this.element.append(
        el(
          "details.more",
          { open: lead(internal) },
          el("summary", {}, counted(internal.length, "internal channel")),
          more,
        ),
      );
    }
  }

  show() {}

  close() {}
}

function tree({ thread, checkpoint, opened, route, label }, channels) {
  const { ns, id } = checkpoint;
  const values = new ValueTree({
    label,
    opened,
    load: (path, offset, limit) => get("value", { thread, ns, id, path, offset, limit }),
    blame: (path) => blame({ thread, ns, id, path }),
  });
  values.lookFor(route.path);
  for (const { name, node, delta } of channels) {
    const notes = checkpoint.changed.includes(name)
      ? [el("span.word", { "data-kind": "changed" }, writtenBy(checkpoint, name))]
      : [];
    if (delta && node.t !== "changes")
      notes.unshift(el("span.word", { title: "This checkpoint has a snapshot of the channel" }, "kept as changes"));
    values.add(name, node, channelPath(name), {
      notes,
      unfolded: isContainer(node) && node.n !== null && node.n <= UNFOLDED && !isInternal(name),
    });
  }
  return values.element;
}

function writtenBy(checkpoint, channel) {
  const nodes = checkpoint.writers?.find((each) => each.channel === channel)?.nodes ?? checkpoint.nodes;
  return nodes.length ? `by ${nodes.join(", ")}` : "changed";
}

/** Returns a place in which the checkpoint appears that first held a value. */
function blame({ thread, ns, id, path }) {
  const place = el("span", {}, "Searching the history…");
  get("blame", { thread, ns, id, path }).then(
    (found) => {
      if (!found) place.replaceChildren("No checkpoint has this value.");
      else {
        const { entry } = found;
        const by = entry.nodes.length ? `, by ${entry.nodes.join(", ")}` : "";
        const isHere = entry.id === id;
        const href = checkpointAddress(entry.ns, entry.id, { view: "state", path });
        place.replaceChildren(
          "Set in ",
          isHere ? "this checkpoint" : el("a", { href }, stepName(entry)),
          by,
          `, ${time(entry.created_at)}`,
        );
      }
    },
    (error) => place.replaceChildren(failure(error)),
  );
  return place;
}
