// Messages around the content: notices that pass, errors in place of content, empty places.

import { button, el } from "./dom.js";

const SHOWN_FOR = 4000;

/** Says something for a moment. */
export function toast(text) {
  const shown = el("div.toast", {}, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), SHOWN_FOR);
}

/** Returns the message in place of content that failed. */
export function failure(error, retry) {
  return el(
    "div.message.failure",
    { role: "alert" },
    el("strong", {}, TITLES[error.kind] ?? "Something went wrong"),
    el("p", {}, error.message),
    retry && button("Try again", { onclick: retry }),
  );
}

const TITLES = {
  away: "No answer from the server",
  session: "Your session has ended",
  not_found: "Not found",
  bad_request: "Request not understood",
  refused: "Not allowed",
};

/** Returns the message for an empty place. */
export function nothing(title, ...explanation) {
  return el("div.message", {}, el("strong", {}, title), el("p", {}, ...explanation));
}

/** Returns the message while content is being fetched. It is seen only if that takes a while. */
export function waiting() {
  return el("div.message.waiting", { role: "status" }, "Loading…");
}

/** Copies a text, or shows it if the browser does not allow that. */
export async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${name} copied`);
  } catch {
    const area = el("textarea.code", { readonly: true, rows: "6", "aria-label": name }, text);
    const dialog = el("dialog", { "aria-label": `Copy: ${name}` }, el("h2", {}, name), area, closing());
    document.body.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
    area.select();
  }
}

/** Returns the button that closes the dialog in which it stands. */
export function closing(name = "Close") {
  return button(name, { onclick: (event) => event.target.closest("dialog").close() });
}
