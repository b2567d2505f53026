// A list of records: filters, a page of rows that open, and what can be done with
// those that are selected or with all that match.

import { call } from "./api.js";
import { button, cell, h, redraw, table, told, wrong } from "./dom.js";
import { filters, labels } from "./filters.js";
import { field, valuesOf } from "./form.js";
import { address, go, link } from "./router.js";

export const pageSize = 50;

// Lists of one account.
const ofAccount = ["listMessages", "listRulesOfAccount", "listAlarmsOfAccount"];

// filterForm shows an operation's filters; applying them is a new address.
function filterForm(view, op, params) {
  const inputs = Object.entries(filters[op]).map(([name, kind]) => field(name, labels[name], Array.isArray(kind) ? ["", ...kind] : kind, params[name]));
  const submit = (e) => { e.preventDefault(); go(view, valuesOf(e.target)); };
  const form = h("form", { class: "fields", submit, "aria-label": "Filters" }, inputs,
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Show"), " ", link(view, {}, "Clear")));
  const set = Object.entries(filterOf(op, params)).map(([name, value]) => labels[name].replace(/ \(.*/, "") + " " + value).join(", ");
  return h("details", { class: "sheet", open: matchMedia("(min-width: 48rem)").matches || !params.account && ofAccount.includes(op) }, h("summary", null, "Filters", set && ": " + set), form);
}

// filterOf is the part of an address that selects records.
const filterOf = (op, params) => Object.fromEntries(Object.entries(params).filter(([name]) => name in filters[op]));

// listing makes a view of a list: filters, a page of rows that open, and what can
// be done with those that are selected or with all that match.
export function listing(o) {
  return (main, params, signal) => {
    const chosen = new Map(), said = told(), body = h("div"), acts = h("p", { class: "bar" });
    const opened = new Set([params.open]);
    const filter = filterOf(o.op, params);
    const ctx = { chosen, filter, said, signal, again: () => {} };
    main.append(h("h1", null, o.title), h("p", { class: "intro" }, o.intro), filterForm(o.view, o.op, params));
    if (o.lacks && o.lacks(filter)) return void main.append(h("p", { class: "empty" }, o.lacks(filter)));
    if (o.head) main.append(o.head(filter, signal));
    main.append(acts, said, body);
    const recount = () => redraw(acts, [o.actions(ctx), button("Refresh", load)]);
    const page = (found) => drawPage(o, ctx, params, found, opened, recount);
    const load = async () => {
      try {
        const found = await call(o.op, { query: { ...filter, cursor: params.cursor, limit: pageSize }, signal });
        redraw(body, page(found));
      } catch (error) {
        if (error.name !== "AbortError") body.replaceChildren(wrong(error));
      }
    };
    // What was put back to work shows its end some seconds later.
    ctx.again = () => { chosen.clear(); [0, 1000, 4000].forEach((wait) => setTimeout(() => signal.aborted || load(), wait)); };
    recount();
    return load();
  };
}

function drawPage(o, ctx, params, found, opened, recount) {
  const present = new Map(found.data.map((x) => [String(x.id), x]));
  for (const id of ctx.chosen.keys()) present.has(id) && o.selectable(present.get(id)) ? ctx.chosen.set(id, present.get(id)) : ctx.chosen.delete(id);
  const boxes = [];
  const rows = found.data.flatMap((x) => drawRow(o, ctx, params, x, opened, boxes, recount));
  const all = h("input", { type: "checkbox", id: "all", change: (e) => {
    for (const box of boxes) if (box.checked !== e.target.checked) box.click();
  } });
  recount();
  return [
    boxes.length > 0 && h("p", { class: "bar" }, h("label", { for: "all" }, all, " Select all on this page")),
    table(o.title, ["Select", ...o.heads], rows, params.cursor ? "Nothing more." : o.empty),
    h("p", { class: "bar" }, params.cursor && link(o.view, { ...ctx.filter }, "Newest"),
      found.meta.next && link(o.view, { ...ctx.filter, cursor: found.meta.next }, "Older")),
  ];
}

// drawRow is the row of a record, and under it, when it is open, all of it.
function drawRow(o, ctx, params, x, opened, boxes, recount) {
  const id = String(x.id), below = h("tr", { class: "detail", role: "row", hidden: !opened.has(id), id: "of-" + id });
  const fill = () => below.replaceChildren(h("td", { colspan: o.heads.length + 1, role: "cell" }, o.detail(x, ctx)));
  const open = button(o.name(x), () => {
    opened.has(id) ? opened.delete(id) : opened.add(id);
    below.hidden = !opened.has(id);
    open.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden) fill();
    history.replaceState(null, "", address(o.view, { ...params, open: below.hidden ? "" : id }));
  }, { class: "open", id: "open-" + id, "aria-expanded": String(opened.has(id)), "aria-controls": "of-" + id, title: id });
  if (opened.has(id)) fill();
  const box = o.selectable(x) && h("input", { type: "checkbox", "aria-label": "Select " + id, change: (e) => {
    e.target.checked ? ctx.chosen.set(id, x) : ctx.chosen.delete(id);
    recount();
  } });
  if (box) { box.checked = ctx.chosen.has(id); boxes.push(box); }
  const cells = [box || "", open, ...o.cells(x)];
  return [h("tr", { role: "row" }, cells.map((c, i) => cell(c, ["Select", ...o.heads][i]))), below];
}

// onSelected and onAll are the buttons above a list.
export const onSelected = (ctx, text, act) => button(text + " (" + ctx.chosen.size + ")", (e) => act(e.target), { disabled: ctx.chosen.size === 0, class: "main" });
export const onAll = (ctx, text, act) => button(text, (e) => act(e.target), Object.keys(ctx.filter).length ? {} : { disabled: true, title: "Set a filter first" });
