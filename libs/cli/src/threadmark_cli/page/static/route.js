// The hash of the page's address names the view, so that links are deep and the back button works.
//
//   thread   the thread's id          list     "timeline", "tree" or "search"
//   ns, at   the checkpoint           view     "state", "changes", "writes" or "about"
//   against  the other of a pair      path     the unfolded place of its state
//   in       only this namespace      find     the text to search for in the thread
//   items    the namespace whose items are listed, empty for all; namespace, key   the item
//   text, status, owner, metadata, sort        the filters of the list

import { fromQuery, toQuery } from "./query.js";

const OF_LISTING = ["text", "status", "owner", "metadata", "sort"];

/** Returns the route that the address names, an object of texts. */
export function currentRoute() {
  return fromQuery(location.hash.slice(1));
}

/** Returns the address of a route. Null and undefined are left out. */
export function address(route) {
  return `#${toQuery(route)}`;
}

/** Returns the address of the present view with some things changed. */
export function changed(changes) {
  return address({ ...currentRoute(), ...changes });
}

/** Returns the address of a thread, of which the newest checkpoint is followed. */
export function threadAddress(thread) {
  const { list } = currentRoute();
  return address({ ...listing(), thread, list: list === "search" ? null : list });
}

/** Returns the address of a checkpoint, in the view that is open. */
export function checkpointAddress(ns, at, { view, path, against } = {}) {
  const route = currentRoute();
  return address({ ...route, ns, at, view: view ?? route.view, path, against });
}

/** Returns the address of the listing alone. */
export function listingAddress() {
  return address(listing());
}

function listing() {
  const route = currentRoute();
  return Object.fromEntries(OF_LISTING.filter((name) => name in route).map((name) => [name, route[name]]));
}

/** Goes to an address; `replace` if this is no step that the back button should take back. */
export function go(to, { replace = false } = {}) {
  if (to === (location.hash || "#")) return;
  if (!replace) {
    location.hash = to;
    return;
  }
  history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
