// Parts of a view that load by themselves, so that one whose back end is down
// leaves the others as they are.

import { button, h, redraw, reading, wrong } from "./dom.js";
import { poll } from "./live.js";

// section is a part of a view under its own heading. load(signal) returns the nodes
// to show; its error is shown in their place with a button to try again. every: load
// again after so many milliseconds while somebody looks, unless the reader is
// selecting text or has opened something. The element's again() loads at once.
export function section(title, load, { signal, every, hint } = {}) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…"));
  const place = h("section", { "aria-label": title }, h("h2", null, title), hint && h("p", { class: "hint" }, hint), body);
  place.again = async () => {
    try {
      const nodes = await load(signal);
      if (!signal.aborted) redraw(body, [nodes]);
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(wrong(error), h("p", { class: "bar" }, button("Try again", place.again)));
    }
  };
  if (every) poll(() => (reading(body) ? undefined : place.again()), { every, signal });
  else place.again();
  return place;
}
