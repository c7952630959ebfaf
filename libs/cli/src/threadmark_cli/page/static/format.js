// How numbers, sizes, times and ids are written.

const COUNT = new Intl.NumberFormat("en");
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const SHORT_DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const EXACT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "longOffset",
});
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** 12345 -> "12,345" */
export function count(number) {
  return COUNT.format(number);
}

/** (1, "checkpoint") -> "1 checkpoint"; (2, "checkpoint") -> "2 checkpoints" */
export function counted(number, name) {
  return `${count(number)} ${name}${number === 1 ? "" : "s"}`;
}

/** 1234567 -> "1.2 MB" */
export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let size = number;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 9.95 ? count(Math.round(size)) : size.toFixed(1)} ${units[unit]}`;
}

/** The time of a day that stands next to it or is today: "14:03:59", else with the day. */
export function time(iso) {
  const then = new Date(iso);
  const now = new Date();
  if (then.toDateString() === now.toDateString()) return TIME.format(then);
  return `${day(then, now)}, ${TIME.format(then)}`;
}

/** The same without seconds. */
export function shortTime(iso) {
  return time(iso).slice(0, -3);
}

/** "just now", "5 min ago", "3 h ago", then the day. */
export function ago(iso) {
  const then = new Date(iso);
  const now = new Date();
  const seconds = (now - then) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return day(then, now);
}

/** The whole time with its time zone, and as it is stored, for a tooltip. */
export function exactTime(iso) {
  return `${EXACT.format(new Date(iso))} (${iso})`;
}

/** "Europe/Vienna, UTC+1": the time zone in which the page shows times. */
export function zone() {
  const name = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "shortOffset" }).formatToParts(new Date());
  const offset = parts.find(({ type }) => type === "timeZoneName").value.replace("GMT", "UTC");
  return name === "UTC" ? name : `${name}, ${offset}`;
}

function day(then, now) {
  return (then.getFullYear() === now.getFullYear() ? SHORT_DAY : DAY).format(then);
}

/** The end of an id, the part that differs between ids made one after the other. */
export function shortId(id) {
  return id.length > 14 ? `…${id.slice(-10)}` : id;
}

const CALL = /^(.+):([0-9a-f]{6})[0-9a-f]{2}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A namespace by the names of its nodes; "" is the graph's own. Only the last one keeps the beginning of the UUID of
 *  its call, which tells it from others: "review:9bf7b494-…|check:1c0e52a7-…" -> "review › check:1c0e52…" */
export function namespaceName(ns) {
  if (ns === "") return "main graph";
  const calls = ns.split("|").map((part) => CALL.exec(part) ?? [part, part, null]);
  const last = calls.at(-1);
  const names = calls.map(([, name]) => name).join(" › ");
  return last[2] === null ? names : `${names}:${last[2]}…`;
}

/** Whether a channel is LangGraph's own bookkeeping, which stands between the channels of a graph's state. */
export function isInternal(channel) {
  return channel.startsWith("__") || channel.startsWith("branch:");
}

/** "step 4", "input", "fork" ...: the name of a checkpoint next to its id. */
export function stepName(entry) {
  if (entry.step === null || entry.step === undefined) return entry.source ?? "checkpoint";
  return `step ${entry.step}`;
}

const PLAIN_CHANNEL = /^[^.[\]"\s][^.[\]"]*$/;

/** The path of a channel's value, as `Saver.extract` reads it. */
export function channelPath(name) {
  return PLAIN_CHANNEL.test(name) ? name : `[${JSON.stringify(name)}]`;
}

/** The configuration of a checkpoint as Python. JSON's way to write a text is one of Python's, too. */
export function configAsPython({ thread, ns, id }) {
  const entries = { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id };
  const lines = Object.entries(entries).map(([key, text]) => `        "${key}": ${JSON.stringify(text)},`);
  return ["config = {", '    "configurable": {', ...lines, "    }", "}"].join("\n");
}
