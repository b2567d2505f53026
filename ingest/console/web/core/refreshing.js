// A section of a view that loads by itself: one that cannot be read says so, and marks
// what it showed before as old, while the others go on.

import { h, reading, redraw, wrong } from "./dom.js";
import { clock } from "./format.js";
import { poll } from "./live.js";

// refreshing adds a section to a place and keeps it fresh until the signal ends it.
//   title  its heading, "" for none
//   load   (signal) => data
//   draw   (data) => nodes
//   every  milliseconds between two reads
// It returns the function that reads again at once.
export function refreshing(place, title, { load, draw, every = 5000, signal }) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…")), note = h("div", { role: "status" });
  place.append(h("section", null, title && h("h2", null, title), note, body));
  let since = null;
  const refresh = async () => {
    try {
      const data = await load(signal);
      since = new Date();
      if (!reading(body)) redraw(body, [draw(data)]);
      if (note.firstChild) note.replaceChildren();
      body.classList.remove("stale");
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      if (!since) return body.replaceChildren(wrong(error));
      note.replaceChildren(stale(since, error));
      body.classList.add("stale");
    }
  };
  poll(refresh, { every, signal });
  return refresh;
}

// stale says that what is shown is old, since when, and why.
export const stale = (since, error) => h("p", { class: "note stale-note" }, "Stale: not refreshed since " + clock(since) + " UTC. " + error.message);
