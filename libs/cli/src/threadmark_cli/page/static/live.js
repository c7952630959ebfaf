// The live stream: one connection to the server, about the open thread and about the list of threads.

import { toQuery } from "./query.js";

const AGAIN_AFTER = 3000; // milliseconds, as browsers wait by themselves

export class Live {
  #thread;
  #list;
  #source = null;
  #asked = null;
  #id = null;
  #hasList = false;
  #isOver = false;

  /** `thread` and `list` receive the events: `thread.said(id, state)`, `thread.changed(id, newest)`,
   *  `thread.catchUp(id)` if something may have been missed, and `list.take({ threads, gone })`. */
  constructor({ thread, list }) {
    this.#thread = thread;
    this.#list = list;
    document.addEventListener("visibilitychange", () => this.#seenOrNot());
  }

  /** Follows a thread, or none if it is null, and the list if that is wanted. */
  follow({ thread, list }) {
    const asked = thread === null && !list ? null : toQuery({ thread, list: list ? 1 : null });
    if (asked === this.#asked) return;
    const isKnown = thread === this.#id;
    this.#asked = asked;
    this.#id = thread;
    this.#hasList = list;
    this.#isOver = false;
    this.#open(isKnown);
  }

  // A browser has six connections to a server for all tabs together: a hidden tab must not hold any.
  #seenOrNot() {
    if (document.hidden) this.#source?.close();
    else if (this.#source?.readyState === EventSource.CLOSED && !this.#isOver) this.#open(true);
  }

  #openAgain(source) {
    if (this.#source === source && !document.hidden) this.#open(true); // a hidden tab opens it when it is seen
  }

  #open(hasMissed) {
    this.#source?.close();
    this.#source = null;
    if (this.#asked === null) return;
    const id = this.#id;
    const isAlone = !this.#hasList;
    const source = new EventSource(`/api/live?${this.#asked}`);
    this.#source = source;
    if (document.hidden) source.close();
    source.addEventListener("open", () => {
      this.#thread.said(id, "live");
      if (hasMissed) this.#thread.catchUp(id);
      hasMissed = true; // if it opens once more, it was lost in between
    });
    source.addEventListener("error", () => {
      this.#thread.said(id, "lost");
      // The browser tries again by itself, except after an error response, such as a proxy's 502.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.#openAgain(source), AGAIN_AFTER);
    });
    source.addEventListener("gone", () => {
      this.#thread.said(id, "gone");
      if (isAlone) {
        this.#isOver = true;
        source.close(); // or the browser asks again and again
      }
    });
    source.addEventListener("change", (event) => this.#thread.changed(id, JSON.parse(event.data).newest));
    source.addEventListener("threads", (event) => this.#list.take(JSON.parse(event.data)));
  }
}
