// Elements of the page. What comes from outside (texts, payloads, reasons,
// answers) becomes text nodes and never markup.

import { ago, capital, exact } from "./format.js";

const colours = {
  good: [
    "ok",
    "taken",
    "ready",
    "done",
    "delivered",
    "accepted",
    "added",
    "cleared",
    "forwarded",
    "enabled",
    "completed",
    "active",
    "all signed",
    "online"
  ],
  bad: [
    "raised",
    "down",
    "not ready",
    "dead",
    "quarantined",
    "rejected",
    "undelivered",
    "failed",
    "limit reached",
    "fails",
    "refused",
    "battery low",
    "no decoder"
  ],
  warn: [
    "suspended",
    "warning",
    "unrouted",
    "retrying",
    "pending",
    "unknown",
    "simulated",
    "changed",
    "silent",
    "muted",
    "paused",
    "differs"
  ]
};
const colourOf = (word) => Object.keys(colours).find((colour) => colours[colour].includes(word)) || "plain";

export const byId = (id) => document.getElementById(id);

// h makes an element. Functions among the properties listen; children that are
// text stay text.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (typeof value === "function") el.addEventListener(name, value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) el.setAttribute(name, value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== ""));
  return el;
}

// state is a word of a record's state in its colour; text stands in its place.
export const state = (word, text) => word && h("span", { class: "state " + colourOf(word) }, capital(text || word));
// stamp is an exact time, when is one relative to now with the exact one on hover.
export const stamp = (text) => text && h("time", { datetime: text, title: exact(text) + " UTC" }, exact(text));
export const when = (text) => text && h("time", { datetime: text, title: exact(text) + " UTC" }, ago(text));
export const code = (text) => text && h("code", null, text);
export const pre = (text) => h("pre", { tabindex: 0 }, text);
export const long = (text) => text && h("span", { class: "long" }, text);
export const told = () => h("div", { role: "status" }); // where an action tells how it went
export const button = (text, click, props) => h("button", { type: "button", click, ...props }, text);
export const wrong = (error) => h("p", { class: "wrong", role: "alert" }, error.message);

// pairs is a list of names and what they are; what is empty is left out.
export function pairs(entries) {
  const filled = entries.filter(
    ([, value]) => value !== "" && value !== null && value !== undefined && value !== false
  );
  return h(
    "dl",
    null,
    filled.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])
  );
}

// cell returns a cell of a table; on a phone the cell names its column.
export function cell(content, head, kind) {
  const inside = h("div", null, content);
  return h("td", { role: "cell", class: kind, "data-label": head }, inside.firstChild && inside);
}

// narrow reports whether the page has the width of a phone.
export const narrow = () => matchMedia("(max-width: 48rem)").matches;

const foldedRows = 25, // parts of a long list that a phone shows at first
  unfolded = new Set(); // the lists of which it shows all

// fold shows the first parts of a long list on a phone, and all of them on demand. wrap makes
// the element that shows some of them.
export function fold(label, parts, wrap) {
  const key = location.hash + " " + label;
  if (!narrow() || parts.length <= foldedRows || unfolded.has(key)) return wrap(parts);
  const unfold = () => {
    unfolded.add(key);
    place.replaceChildren(wrap(parts));
  };
  const place = h("div", null, wrap(parts.slice(0, foldedRows)), button("Show all " + parts.length, unfold));
  return place;
}

// isEmpty reports whether a cell shows nothing.
const isEmpty = (content) =>
  Array.isArray(content)
    ? content.every(isEmpty)
    : content === null || content === undefined || content === false || String(content).trim() === "";

// table makes one with headers; a head that ends in # is of numbers. A column without content
// is left out. The roles stay what they are when a phone shows rows as cards; those of a
// compact table are two lines there.
export function table(label, allHeads, allRows, empty, { compact } = {}) {
  if (allRows.length === 0) return h("p", { class: "empty" }, empty);
  const filled = allHeads.map((_, i) => allRows.some((row) => !isEmpty(row[i])));
  const heads = allHeads.filter((_, i) => filled[i]),
    rows = allRows.map((row) => row.filter((_, i) => filled[i]));
  const name = (i) => heads[i].replace("#", "");
  const kind = (i) => (heads[i].endsWith("#") ? "number" : false);
  const head = heads.map((_, i) => h("th", { scope: "col", role: "columnheader", class: kind(i) }, name(i)));
  const line = (cells) =>
    h(
      "tr",
      { role: "row" },
      cells.map((c, i) => cell(c, name(i), kind(i)))
    );
  return fold(label, rows.map(line), (shown) => frame(label, head, shown, compact));
}

// frame is a table of finished header cells and rows.
export const frame = (label, head, rows, compact) =>
  h(
    "div",
    { class: compact ? "scroll compact" : "scroll" },
    h(
      "table",
      { role: "table", "aria-label": label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
      h("tbody", { role: "rowgroup" }, rows)
    )
  );

// redraw replaces what a place shows and leaves the focus where it was.
export function redraw(place, nodes) {
  const targets = () => [...place.querySelectorAll("a, button, input, summary, pre")];
  const focused = document.activeElement,
    i = targets().indexOf(focused);
  place.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  if (i >= 0) ((focused.id && byId(focused.id)) || targets()[i] || byId("main")).focus({ preventScroll: true });
}

// reading reports whether the reader has selected text in a place.
export const reading = (place) => !getSelection().isCollapsed && place.contains(getSelection().anchorNode);
