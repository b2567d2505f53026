// Parts of a view that load by themselves. If a part cannot load, it shows the error and marks its
// old content as stale; the other parts are not affected.

import { button, h, redraw, reading, wrong } from "./dom.js";
import { clock } from "./format.js";
import { poll } from "./live.js";

// section makes a part of a view under its own heading, "" for none. load(signal)
// returns the nodes to show. every: load again after so many milliseconds while
// somebody looks, unless the reader is selecting text. The element's again() loads at
// once.
export function section(title, load, { signal, every, hint, actions } = {}) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…")),
    note = h("div", { role: "status" });
  const head = title && h("div", { class: "heading" }, h("h2", null, title), actions);
  const place = h(
    "section",
    { "aria-label": title || false },
    head,
    hint && h("p", { class: "hint" }, hint),
    note,
    body
  );
  let since = null;
  place.again = async () => {
    try {
      const nodes = await load(signal);
      if (signal.aborted) return;
      since = new Date();
      redraw(body, [nodes]);
      note.replaceChildren();
      body.classList.remove("stale");
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      if (!since)
        return void body.replaceChildren(wrong(error), h("p", { class: "bar" }, button("Try again", place.again)));
      note.replaceChildren(stale(since, error));
      body.classList.add("stale");
    }
  };
  if (every) poll(() => (reading(body) ? undefined : place.again()), { every, signal });
  else place.again();
  return place;
}

// stale shows since when the content is old, and the reason.
export const stale = (since, error) =>
  h("p", { class: "note stale-note" }, "Stale: not refreshed since " + clock(since) + ". " + error.message);
