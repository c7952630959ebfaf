// Asks the server. Each function answers with its JSON, or throws an ApiError that names the fault.

import { toQuery } from "./query.js";

/** A refusal or failure of the server. `kind` is its word for it, or "away" if it did not answer. */
export class ApiError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** Returns the answer to a question: `get("checkpoint", { thread, ns, id })`. Parameters that are null are left out. */
export function get(name, parameters = {}, { signal } = {}) {
  return answer(`/api/${name}?${toQuery(parameters)}`, { signal });
}

/** Asks for a change. Each part of the body is JSON already: a person's text is sent unchanged, as a number
 *  that is parsed may come out as another one (1.0, or one of twenty digits). */
export function post(name, parts) {
  const headers = { "Content-Type": "application/json" };
  return answer(`/api/${name}`, { method: "POST", headers, body: objectOf(parts) });
}

async function answer(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("away", "threadmark serve does not answer. Check that it is still running.");
  }
  const found = await response.json().catch(() => null);
  if (response.ok && found !== undefined) return found;
  if (response.status === 401) {
    throw new ApiError(
      "session",
      "Start `threadmark serve` again and open the address that it prints.",
    );
  }
  throw new ApiError(
    found?.error?.kind ?? "failed",
    found?.error?.message ?? `The server answered with status ${response.status}.`,
  );
}

/** Returns the JSON of an object whose values are JSON. */
export function objectOf(parts) {
  const entries = Object.entries(parts).filter(([, json]) => json !== undefined);
  return `{${entries.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
}

/** Asks one question at a time: the next one aborts the one before, whose promise never settles. */
export class Latest {
  #controller = new AbortController();

  async get(name, parameters) {
    this.cancel();
    const { signal } = this.#controller;
    try {
      const found = await get(name, parameters, { signal });
      return signal.aborted ? never() : found;
    } catch (error) {
      return signal.aborted ? never() : Promise.reject(error);
    }
  }

  cancel() {
    this.#controller.abort();
    this.#controller = new AbortController();
  }
}

function never() {
  return new Promise(() => {});
}
