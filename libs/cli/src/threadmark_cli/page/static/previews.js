// A value in a line: the text next to its name while it is folded. Notation is Python's.

const LONGEST = 160;
const SAYING = ["content", "value"];
const SIZED = {
  list: "item",
  tuple: "item",
  set: "item",
  frozenset: "item",
  deque: "item",
  dict: "key",
  object: "field",
  changes: "change",
};

/** Whether something can be unfolded in a value. */
export function isContainer(node) {
  return node.t in SIZED && node.n !== 0;
}

/** "list", "AIMessage", "datetime" ...: the type of a value, short. */
export function typeName(node) {
  return "name" in node ? node.name.split(/[:.]/).at(-1) : node.t === "none" ? "None" : node.t;
}

/** "3 items": how much there is in a value, or null. */
export function sizeName(node) {
  if (node.t === "str") return node.n > LONGEST ? `${number(node.n)} characters` : null;
  if (node.t === "bytes") return `${number(node.n)} byte${node.n === 1 ? "" : "s"}`;
  if (!(node.t in SIZED) || node.n === null) return null;
  if (node.t === "changes") return null; // it stands in the line
  return `${number(node.n)} ${SIZED[node.t]}${node.n === 1 ? "" : "s"}`;
}

/** Returns a value as a line of text, cut if it is long. */
export function preview(node, depth = 0) {
  const text = written(node, depth);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function written(node, depth) {
  switch (node.t) {
    case "none":
      return "None";
    case "bool":
      return node.v ? "True" : "False";
    case "str":
      return quoted(node.v, node.v.length < node.n);
    case "bytes":
      return node.n ? `${node.v.slice(0, 32)}${node.n > 16 ? "…" : ""}` : "empty";
    case "list":
    case "tuple":
    case "set":
    case "frozenset":
    case "deque":
      return inside(node, depth, BRACKETS[node.t] ?? BRACKETS.list, node.items, (item) => preview(item, depth + 1));
    case "dict":
      return inside(
        node,
        depth,
        ["{", "}"],
        node.entries,
        ([key, item]) => `${preview(key, 2)}: ${preview(item, depth + 1)}`,
      );
    case "object":
      return object(node, depth);
    case "changes":
      return changes(node);
    default:
      return node.v;
  }
}

const BRACKETS = { list: ["[", "]"], tuple: ["(", ")"], set: ["{", "}"], frozenset: ["{", "}"], deque: ["[", "]"] };

function inside(node, depth, [begin, end], parts, write) {
  if (!node.n) return begin + end;
  if (!parts?.length || depth > 1) return `${begin}…${end}`;
  const shown = parts.slice(0, 4).map(write);
  if (parts.length > 4 || parts.length < node.n) shown.push("…");
  return begin + shown.join(", ") + end;
}

// The text of a message or the question of an interrupt matters most: it stands alone, without the other fields.
function object(node, depth) {
  const says = node.entries?.find(([name, item]) => SAYING.includes(name) && item.t === "str" && item.v);
  if (says) return written(says[1], depth);
  return inside(node, depth, ["(", ")"], node.entries, ([name, item]) => `${name}=${preview(item, depth + 1)}`);
}

// The value itself is made by the graph alone. Its parts can be read.
function changes(node) {
  if (node.n === null) return "not read yet";
  const hasSnapshot = node.offset === 0 && node.entries?.[0]?.[0] === "snapshot";
  const count = node.n - (hasSnapshot ? 1 : 0);
  const name = `${number(count)} change${count === 1 ? "" : "s"}`;
  return hasSnapshot ? `snapshot and ${name}` : name;
}

function quoted(text, isCut) {
  const start = text.slice(0, LONGEST).replace(/\s*\n\s*/g, " ↵ ");
  return `"${start}${isCut || text.length > LONGEST ? "…" : '"'}`;
}

function number(value) {
  return value.toLocaleString("en");
}
