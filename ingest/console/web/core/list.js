// A list of records: filters, a page of rows that open, and what can be done with
// those that are selected or with all that match.

import { accounts } from "./accounts.js";
import { call } from "./api.js";
import { button, cell, h, reading, redraw, stamp, table, told, wrong } from "./dom.js";
import { filters, labels } from "./filters.js";
import { field, valuesOf } from "./form.js";
import { clock } from "./format.js";
import { poll } from "./live.js";
import { address, go, link } from "./router.js";
import { stale } from "./section.js";
import { may, ownAccount } from "./session.js";

export const pageSize = 50;
const liveEvery = 5000;  // milliseconds between two reads of the first page
const newFor = 30_000;   // how long a row that came meanwhile is marked

// Lists of one account.
const ofAccount = ["listMessages", "listCredit"];

// filterForm shows an operation's filters; applying them is a new address.
export function filterForm(view, op, params) {
  const inputs = Object.entries(filters[op]).filter(([name]) => name !== "account" || !ownAccount()).map(([name, kind]) => field(name, labels[name], Array.isArray(kind) ? ["", ...kind] : kind, params[name]));
  if (inputs.length === 0) return "";
  const submit = (e) => { e.preventDefault(); go(view, valuesOf(e.target)); };
  const form = h("form", { class: "fields", submit, "aria-label": "Filters" }, inputs,
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Show"), " ", link(view, {}, "Clear")));
  if (form.elements.account) suggestAccounts(form);
  const set = Object.entries(filterOf(op, params)).filter(([name]) => name !== "account" || !ownAccount()).map(([name, value]) => labels[name].replace(/ \(.*/, "") + " " + value).join(", ");
  return h("details", { class: "sheet", open: matchMedia("(min-width: 48rem)").matches || !params.account && ofAccount.includes(op) }, h("summary", null, "Filters", set && ": " + set), form);
}

// suggestAccounts offers the names of accounts where one is asked for.
function suggestAccounts(form) {
  const list = h("datalist", { id: "accounts" });
  form.append(list);
  form.elements.account.setAttribute("list", "accounts");
  accounts().then((all) => list.append(...all.map((a) => h("option", { value: a.name }))));
}

// ofWhich asks for an account, where a list is of one, and offers those there are.
function ofWhich(o, text) {
  const offered = h("p", { class: "bar" });
  accounts().then((all) => offered.append(...all.map((a) => link(o.view, { account: a.name }, a.name))));
  return h("div", { class: "empty" }, text, offered);
}

// filterOf is the part of an address that selects records.
const filterOf = (op, params) => Object.fromEntries(Object.entries(params).filter(([name]) => name in filters[op]));

// listing makes a view of a list: filters, a page of rows that open, and what can
// be done with those that are selected or with all that match. act is the operation
// for which rows are selected, if there is one.
export function listing(o) {
  return (main, asked, signal) => {
    const params = ownAccount() && "account" in filters[o.op] ? { ...asked, account: ownAccount() } : asked;
    const chosen = new Map(), said = told(), body = h("div"), acts = h("p", { class: "bar" });
    const opened = new Set([params.open]);
    const filter = filterOf(o.op, params);
    const ctx = { chosen, filter, said, signal, again: () => {} };
    main.append(h("h1", null, o.title), h("p", { class: "intro" }, o.intro), filterForm(o.view, o.op, params));
    if (o.lacks && o.lacks(filter)) return void main.append(ofWhich(o, o.lacks(filter)));
    if (o.head) main.append(o.head(filter, signal));
    const note = h("div", { role: "status" }), live = h("span", { class: "hint live" }), marks = newRows();
    main.append(acts, said, note, body);
    const recount = () => redraw(acts, [o.actions ? o.actions(ctx) : [], button("Refresh", load), live]);
    let since = null, requested = 0, drawn = 0;
    const load = async () => {
      const number = ++requested;
      try {
        const found = await call(o.op, { query: { ...filter, cursor: params.cursor, limit: pageSize }, signal });
        if (number < drawn) return; // a later request was answered before
        drawn = number;
        since = new Date();
        ctx.fresh = params.cursor ? new Set() : marks(found.data.map((x) => keyOf(o, x)));
        redraw(body, drawPage(o, ctx, params, found, opened, recount));
        body.classList.remove("stale");
        note.replaceChildren(...found.meta.stale ? [h("p", { class: "note stale-note" }, found.meta.stale)] : [], ...away(found.meta.away || []));
        live.textContent = (params.cursor ? "An older page, as of " : "Live: asked every " + liveEvery / 1000 + " seconds; as of ") + clock(since) + " UTC";
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        if (!since) return body.replaceChildren(wrong(error));
        note.replaceChildren(stale(since, error));
        body.classList.add("stale");
      }
    };
    // What a person reads, writes or has opened stays as it is.
    const inUse = () => reading(body) || opened.size > (opened.has(undefined) ? 1 : 0) || (body.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), textarea"));
    const follow = () => {
      if (!since || !inUse()) return load();
      live.textContent = "Live updates wait while a row is open; as of " + clock(since) + " UTC";
    };
    // What was put back to work shows its end some seconds later.
    ctx.again = () => { chosen.clear(); [0, 1000, 4000].forEach((wait) => setTimeout(() => signal.aborted || load(), wait)); };
    recount();
    return params.cursor ? load() : poll(follow, { every: liveEvery, signal });
  };
}

// away names the gateways whose records a list lacks.
const away = (gateways) => gateways.map((g) => h("p", { class: "note" }, "Gateway " + g.node + " does not answer, so what it has is missing: " + g.error));

// keyOf names a record of a list.
const keyOf = (o, x) => String(o.key ? o.key(x) : x.id);

// newRows remembers which rows a list has had, and returns those that came since the
// first time; each stays new for a while.
function newRows() {
  const seen = new Map();
  let first = true;
  return (ids) => {
    const now = Date.now();
    for (const id of ids) if (!seen.has(id)) seen.set(id, first ? 0 : now);
    first = false;
    return new Set(ids.filter((id) => now - seen.get(id) < newFor));
  };
}

// picks reports whether rows can be selected, for the operation that is done with them.
const picks = (o) => Boolean(o.act) && may(o.act);
const headsOf = (o) => (picks(o) ? ["Select", ...o.heads] : o.heads);

function drawPage(o, ctx, params, found, opened, recount) {
  const present = new Map(found.data.map((x) => [keyOf(o, x), x]));
  for (const id of ctx.chosen.keys()) present.has(id) && o.selectable(present.get(id)) ? ctx.chosen.set(id, present.get(id)) : ctx.chosen.delete(id);
  const boxes = [];
  const heads = headsOf(o);
  const rows = found.data.flatMap((x) => drawRow(o, ctx, params, x, opened, boxes, recount));
  const all = h("input", { type: "checkbox", id: "all", change: (e) => {
    for (const box of boxes) if (box.checked !== e.target.checked) box.click();
  } });
  recount();
  return [
    boxes.length > 0 && h("p", { class: "bar" }, h("label", { for: "all" }, all, " Select all on this page")),
    table(o.title, heads, rows, found.meta.searched_to ? "Nothing found so far." : params.cursor ? "Nothing more." : o.empty),
    found.meta.searched_to && h("p", { class: "hint" }, "Searched back to ", stamp(found.meta.searched_to), ". “Older” goes on from there."),
    h("p", { class: "bar" }, params.cursor && link(o.view, { ...ctx.filter }, "Newest"),
      found.meta.next && link(o.view, { ...ctx.filter, cursor: found.meta.next }, "Older")),
  ];
}

// drawRow is the row of a record, and under it, when it is open, all of it.
function drawRow(o, ctx, params, x, opened, boxes, recount) {
  const id = keyOf(o, x), below = h("tr", { class: "detail", role: "row", hidden: !opened.has(id), id: "of-" + id });
  const fill = () => below.replaceChildren(h("td", { colspan: headsOf(o).length, role: "cell" }, o.detail(x, ctx)));
  const open = button(o.name(x), () => {
    opened.has(id) ? opened.delete(id) : opened.add(id);
    below.hidden = !opened.has(id);
    open.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden) fill();
    history.replaceState(null, "", address(o.view, { ...params, open: below.hidden ? "" : id }));
  }, { class: "open", id: "open-" + id, "aria-expanded": String(opened.has(id)), "aria-controls": "of-" + id, title: id });
  if (opened.has(id)) fill();
  const box = picks(o) && o.selectable(x) && h("input", { type: "checkbox", "aria-label": "Select " + id, change: (e) => {
    e.target.checked ? ctx.chosen.set(id, x) : ctx.chosen.delete(id);
    recount();
  } });
  if (box) { box.checked = ctx.chosen.has(id); boxes.push(box); }
  const fresh = ctx.fresh.has(id);
  const cells = [...picks(o) ? [box || ""] : [], [open, fresh && h("span", { class: "state good" }, "new")], ...o.cells(x)];
  return [h("tr", { role: "row", class: fresh && "fresh" }, cells.map((c, i) => cell(c, headsOf(o)[i]))), below];
}

// onSelected and onAll are the buttons above a list, of who may use the operation.
export const onSelected = (ctx, operation, text, act) => may(operation) && button(text + " (" + ctx.chosen.size + ")", (e) => act(e.target), { disabled: ctx.chosen.size === 0, class: "main" });
export const onAll = (ctx, operation, text, act) => may(operation) && button(text, (e) => act(e.target), Object.keys(ctx.filter).length ? {} : { disabled: true, title: "Set a filter first" });
