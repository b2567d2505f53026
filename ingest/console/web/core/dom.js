// Elements of the page. Data of others (texts, payloads, reasons, answers) becomes text nodes and
// never markup.

import { ago, capital, cut, exact, stateWord } from "./format.js";

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
    "quarantined",
    "rejected",
    "undelivered",
    "failed",
    "limit reached",
    "fails",
    "refused",
    "battery low",
    "silent",
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
    "muted",
    "paused",
    "differs"
  ]
};
const colourOf = (word) => Object.keys(colours).find((colour) => colours[colour].includes(word)) || "plain";

export const byId = (id) => document.getElementById(id);

// h makes an element. A property with a function adds an event listener. Strings among the children
// become text nodes.
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

// state shows the state of a record in its colour, as text if text is given.
export const state = (word, text) =>
  word && h("span", { class: "state " + colourOf(stateWord(word)) }, capital(text || stateWord(word)));
// stamp shows an exact time; when shows a time relative to now, with the exact time on hover.
export const stamp = (text) => text && h("time", { datetime: text, title: exact(text) + " UTC" }, exact(text));
export const when = (text) => text && h("time", { datetime: text, title: exact(text) + " UTC" }, ago(text));
// due shows the time of something to come; "now" if the time has passed.
export const due = (text) => text && (Date.parse(text) > Date.now() ? when(text) : "now");
export const code = (text) => text && h("code", null, text);
export const pre = (text) => h("pre", { tabindex: 0 }, text);
// long shows a text that may be cut, after limit characters or by the style; it is whole on hover.
export const long = (text, limit) =>
  text && h("span", { class: "long", title: typeof text === "string" && text }, limit ? cut(text, limit) : text);
// parted shows an address or the path of a field, which breaks after its separators only.
export const parted = (text) =>
  text &&
  h(
    "span",
    { class: "parted" },
    text.split(text.includes("/") ? /(?<=[/?&])(?!\/)/ : /(?<=\.)/).map((part) => [part, h("wbr")])
  );
export const told = () => h("div", { role: "status" }); // a place for the result of an action
export const button = (text, click, props) => h("button", { type: "button", click, ...props }, text);
export const wrong = (error) => h("p", { class: "wrong", role: "alert" }, error.message);

// pairs shows names with their values and omits empty values.
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
  return h("td", { role: "cell", class: kind, "data-label": head }, !isEmpty(content) && h("div", null, content));
}

// narrow reports whether the page has the width of a phone.
export const narrow = () => matchMedia("(max-width: 48rem)").matches;

const foldedRows = 25, // parts of a long list that a phone shows at first
  unfolded = new Set(); // the lists of which it shows all

// fold shows the first parts of a long list on a phone, and all parts on demand. wrap returns
// the element for an array of parts.
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

// table makes a table with headers and omits empty columns. A head that ends in # marks a column
// of numbers. On a phone the rows are cards that name their columns, with a line for each cell unless the
// table is compact; explicit roles keep it a table for screen readers.
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

// frame makes a table of header cells and rows.
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

// redraw replaces the content of a place and keeps the focus.
export function redraw(place, nodes) {
  const targets = () => [...place.querySelectorAll("a, button, input, summary, pre")];
  const focused = document.activeElement,
    i = targets().indexOf(focused);
  place.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  if (i >= 0) ((focused.id && byId(focused.id)) || targets()[i] || byId("main")).focus({ preventScroll: true });
}

// reading reports whether the reader has selected text in a place.
export const reading = (place) => !getSelection().isCollapsed && place.contains(getSelection().anchorNode);
