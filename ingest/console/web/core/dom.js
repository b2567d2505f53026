// Elements of the page. What comes from outside (texts, payloads, reasons,
// answers) becomes text nodes and never markup.

const colours = {
  ok: "good", taken: "good", ready: "good", done: "good", delivered: "good", accepted: "good", added: "good",
  raised: "bad", cleared: "good", forwarded: "good", enabled: "good", disabled: "plain",
  down: "bad", "not ready": "bad", dead: "bad", quarantined: "bad", rejected: "bad", undelivered: "bad",
  completed: "good", active: "good", "all signed": "good", failed: "bad", "limit reached": "bad", suspended: "warn", warning: "warn",
  unrouted: "warn", retrying: "warn", pending: "warn", unknown: "warn", simulated: "warn", embedded: "plain", changed: "warn"
};

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

export const state = (word) => word && h("span", { class: "state " + (colours[word] || "plain") }, word);
export const stamp = (text) => text && h("time", { datetime: text, title: text }, text.replace("T", " ").replace(/(\.\d+)?Z$/, ""));
export const code = (text) => text && h("code", null, text);
export const pre = (text) => h("pre", { tabindex: 0 }, text);
export const long = (text) => text && h("span", { class: "long" }, text);
export const told = () => h("div", { role: "status" }); // where an action tells how it went
export const button = (text, click, props) => h("button", { type: "button", click, ...props }, text);
export const wrong = (error) => h("p", { class: "wrong", role: "alert" }, error.message);

// pairs is a list of names and what they are; what is empty is left out.
export function pairs(entries) {
  const shown = entries.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return h("dl", null, shown.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

// cell is one of a table; on a phone it names its column.
export function cell(content, head, kind) {
  const inside = h("div", null, content);
  return h("td", { role: "cell", class: kind, "data-label": head }, inside.firstChild && inside);
}

// table makes one with headers; a head that ends in # is of numbers. The roles
// stay what they are when a phone shows rows as cards.
export function table(label, heads, rows, empty) {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  const name = (i) => heads[i].replace("#", "");
  const kind = (i) => (heads[i].endsWith("#") ? "number" : false);
  const head = h("tr", { role: "row" }, heads.map((_, i) => h("th", { scope: "col", role: "columnheader", class: kind(i) }, name(i))));
  const line = (cells) => (cells instanceof Node ? cells : h("tr", { role: "row" },
    cells.map((c, i) => cell(c, name(i), kind(i)))));
  return h("div", { class: "scroll" }, h("table", { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, rows.map(line))));
}

// redraw replaces what a place shows and leaves the focus where it was.
export function redraw(place, nodes) {
  const all = () => [...place.querySelectorAll("a, button, input, summary, pre")];
  const held = document.activeElement, at = all().indexOf(held);
  place.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  if (at >= 0) ((held.id && byId(held.id)) || all()[at] || byId("main")).focus({ preventScroll: true });
}

// reading reports whether the reader has selected text in a place.
export const reading = (place) => !getSelection().isCollapsed && place.contains(getSelection().anchorNode);
