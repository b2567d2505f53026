// A list of records: filters in the address, columns that sort, rows that open or lead to a
// page, export, and what can be done with those that are selected or with all that match.

import { accountNames } from "./accounts.js";
import { address, go, link } from "./address.js";
import { all, call } from "./api.js";
import { button, cell, frame, h, narrow, reading, redraw, stamp, told, wrong } from "./dom.js";
import { defaults, filters, foremost, labels, optionTexts } from "./filters.js";
import { field, pick, valuesOf } from "./form.js";
import { capital, clock } from "./format.js";
import { poll } from "./live.js";
import { stale } from "./section.js";
import { may, ownAccount } from "./session.js";

// pageSize is the number of rows of a page: fewer on a phone.
const pageSize = () => (narrow() ? 25 : 50);
const liveEvery = 5000; // milliseconds between two reads of the first page
const newFor = 30_000; // how long a row that came meanwhile is marked
const exportLimit = 10_000; // rows of a file
const searchTime = 200; // milliseconds of one request of a search

// pickers are the kinds of filters whose values are records: what to pick from, within an
// account if one is chosen. Operations are those of the newest entries of the audit log.
const pickers = {
  account: accountNames,
  decoder: async (query) => (await all("listDecodersOfAccounts", { query })).map((d) => [d.id, d.name || d.id]),
  device: async (query) => (await all("listDevicesOfAccounts", { query })).map((d) => [d.id, d.name || d.identifier]),
  operation: async () => {
    const { data } = await call("listAudit", { query: { limit: 200 } });
    return [...new Map(data.map((e) => [e.operation, e.action]))].sort(([, a], [, b]) => a.localeCompare(b));
  },
  rule: async (query) => (await all("listRulesOfAccount", { query })).map((r) => [r.id, r.name || r.id])
};

// input is the input of a filter.
function input(op, name, kind, params) {
  const label = labels[op + "." + name] || labels[name];
  if (pickers[kind]) return pick(name, label, () => pickers[kind]({ account: params.account }), params[name]);
  const textOf = (word) =>
    word &&
    (optionTexts[op + "." + word] || optionTexts[name + "." + word] || optionTexts[word] || capital(word));
  const standard = defaults[name] || "",
    words = Array.isArray(kind) && kind.filter((word) => word !== standard);
  return field(
    name,
    label,
    words ? [["", textOf(standard)], ...words.map((word) => [word, textOf(word)])] : kind,
    params[name],
    kind === "text" && foremost.includes(name) ? { type: "search" } : {}
  );
}

// filterForm shows the filters of an operation; applying them opens a new address. The foremost
// filters stand in one line, on a phone only the first of them; the others fold out.
export function filterForm(view, op, params, extra = {}) {
  const kinds = { ...filters[op], ...extra },
    names = Object.keys(kinds).filter((name) => name !== "account" || !ownAccount());
  if (names.length === 0) return "";
  const first = foremost.filter((name) => names.includes(name)).slice(0, narrow() ? 1 : names.length),
    further = names.filter((name) => !first.includes(name));
  // Choices apply at once.
  const typed = (fields) => fields.some((name) => kinds[name] === "text" || kinds[name] === "time");
  const submit = () => h("button", { type: "submit" }, "Apply");
  const set = names.filter((name) => params[name]),
    chosen = further.filter((name) => params[name]).length;
  const apply = (form) => go(view, { ...valuesOf(form), sort: params.sort });
  const make = (name) => input(op, name, kinds[name], params);
  const form = h(
    "form",
    {
      class: "filters",
      "aria-label": "Filters",
      submit: (e) => {
        e.preventDefault();
        apply(form);
      },
      change: (e) => {
        if (e.target.tagName === "SELECT") apply(form);
      }
    },
    first.map(make),
    (typed(first) || set.length > 0) &&
      h(
        "p",
        { class: "bar" },
        typed(first) && submit(),
        set.length > 0 && link(view, {}, "Clear")
      ),
    further.length > 0 &&
      h(
        "details",
        { open: chosen > 0 && !narrow(), class: "wide" },
        h("summary", null, "More filters" + (chosen ? " (" + chosen + " set)" : "")),
        h("div", { class: "filters" }, further.map(make), !typed(first) && typed(further) && submit())
      )
  );
  return form;
}

// filterOf is the part of an address that selects records.
const filterOf = (o, params) =>
  Object.fromEntries(
    Object.entries(params).filter(
      ([name, value]) => (name in filters[o.op] || name in (o.filters || {})) && value !== ""
    )
  );

// listing makes a view of a list. o has:
//   view, op, title    the view, the operation that lists, the heading
//   intro, empty       one sentence each; without filters, "No x match the filters." is "No x
//                      yet."; empty may be a function that returns nodes
//   columns            [{ head, cell: (x) => nodes, value: (x) => what to sort by and export,
//                      number, rest, roomy, exported, first, unlabelled }]: rest columns are left
//                      out on a phone, where first ones and the state stand in the first line
//                      without their heads, as unlabelled ones do below; roomy ones hold longer
//                      texts, exported ones are in files only
//   sorted             the column by which the operation sorts, "-Created" for descending
//   name, detail       name: the text of the button that opens a row, "" for a button before the
//                      first cell; detail: what it shows. Without them the first column is a
//                      cell like the others
//   searches           whether the operation takes search_ms
//   key                the id of a row, if it is not x.id
//   act, selectable    the operation for which rows are selected, or a function that reports
//                      whether they are; and which rows can be selected
//   selects            what describes the rows that can be selected, if not all can
//   actions            (ctx) => buttons above the list
//   add                () => a button beside the heading, or nothing
//   head               (filter, signal) => what stands above the list
//   filters            further filters than those of the operation, for load
//   adapt              (query) => query, before the operation is asked
//   load               (query, signal) => { data, meta }, in the place of the operation
//   group              (records, the id of the open one) => records, some of which stand for several
export function listing(o) {
  return (main, asked, signal) => {
    const params = ownAccount() && "account" in filters[o.op] ? { ...asked, account: ownAccount() } : asked;
    const chosen = new Map(),
      note = told(),
      body = h("div", { class: "listing" }),
      acts = h("p", { class: "bar" });
    const opened = new Set([params.open].filter(Boolean)),
      filter = filterOf(o, params);
    const query = o.adapt ? o.adapt(filter) : filter;
    const fetchPage = o.load || ((q, s) => call(o.op, { query: q, signal: s }));
    const ctx = { chosen, filter, query, said: note, signal, again: () => {} };
    const state = { o, ctx, params, opened, found: null };
    main.append(
      h("div", { class: "heading" }, h("h1", null, o.title), o.add && o.add(() => ctx.again(), note)),
      o.intro ? h("p", { class: "intro" }, o.intro) : "",
      filterForm(o.view, o.op, params, o.filters)
    );
    if (o.head) main.append(o.head(filter, signal));
    const status = h("div", { role: "status" }),
      live = h("span", { class: "hint" }),
      marks = newRows();
    main.append(acts, note, status, body);
    const aside = h(
      "span",
      { class: "aside" },
      live,
      button("Refresh", () => load(), { class: "quiet" }),
      button("Export CSV", () => exportRows(o, query, fetchPage, note), { class: "quiet" })
    );
    state.recount = () => redraw(acts, [state.everyBox, o.actions ? o.actions(ctx) : [], aside]);
    state.draw = () => redraw(body, drawPage(state));
    let since = null,
      restUntil = 0, // no update begins before this time
      requested = 0,
      drawn = 0;
    const load = async () => {
      const number = ++requested,
        began = Date.now();
      try {
        const first = { ...query, cursor: params.cursor, limit: pageSize() };
        if (o.searches && Object.keys(filter).length) first.search_ms = searchTime;
        await search(fetchPage, first, signal, (found, searching) => {
          if (number < drawn || signal.aborted) return false; // a later request was answered before
          drawn = number;
          since = new Date();
          ctx.fresh = params.cursor ? new Set() : marks(found.data.map((x) => keyOf(o, x)));
          state.found = found;
          state.draw();
          body.classList.remove("stale");
          const meta = found.meta || {};
          status.replaceChildren(
            searching ? h("p", { class: "hint" }, "Searching, now at ", stamp(meta.searched_to), " UTC …") : "",
            ...(meta.stale ? [h("p", { class: "note stale-note" }, meta.stale)] : []),
            ...away(meta.away || [])
          );
          return true;
        });
        restUntil = Date.now() + 10 * (Date.now() - began); // a long search is repeated less often
        live.textContent = params.cursor || restUntil > Date.now() + liveEvery
          ? "As of " + clock(since)
          : "Updated " + clock(since) + " (every " + liveEvery / 1000 + " s)";
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        if (!since) return body.replaceChildren(wrong(error));
        status.replaceChildren(stale(since, error));
        body.classList.add("stale");
      }
    };
    // What a person reads, writes or has opened stays as it is.
    const inUse = () =>
      reading(body) ||
      state.found.data.some((x) => opened.has(keyOf(o, x))) ||
      (body.contains(document.activeElement) &&
        document.activeElement.matches("input:not([type=checkbox]), textarea, select"));
    const follow = () => {
      if (Date.now() < restUntil) return;
      if (!since || !inUse()) return load();
      live.textContent = "Updates wait while a row is open. As of " + clock(since);
    };
    // What was put back to work shows its end some seconds later.
    ctx.again = () => {
      chosen.clear();
      [0, 1000, 4000].forEach((wait) => setTimeout(() => signal.aborted || load(), wait));
    };
    state.recount();
    return params.cursor ? load() : poll(follow, { every: liveEvery, signal });
  };
}

// search fetches a page. A search that needs longer than search_ms continues in further requests,
// until the page is full or the list ends. show is called with the page so far, and whether the
// search goes on; it returns false to stop the search.
async function search(fetchPage, query, signal, show) {
  const page = { data: [] };
  for (let searching = true; searching; ) {
    const limit = query.limit - page.data.length,
      cursor = page.meta ? page.meta.next : query.cursor;
    const found = await fetchPage({ ...query, cursor, limit }, signal);
    page.data = [...page.data, ...found.data];
    page.meta = found.meta;
    searching = Boolean(found.meta && found.meta.searched_to) && page.data.length < query.limit;
    if (!show(page, searching)) return;
  }
}

// away names the gateways whose records are missing in a list.
const away = (gateways) =>
  gateways.map((g) =>
    h("p", { class: "note" }, "Gateway " + g.node + " does not answer, so its records are missing: " + g.error)
  );

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

// allowed reports whether the reader may use an operation; for a function it returns the result.
const allowed = (operation) => (typeof operation === "function" ? operation() : may(operation));

// picks reports whether rows can be selected, for the operation that is done with them.
const picks = (o) => Boolean(o.act) && allowed(o.act);

const isTime = (v) => /^\d{4}-\d\d-\d\dT/.test(v);

// compare orders two values of a column: numbers by size, times by time, everything else as text.
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (isTime(a) && isTime(b)) return Date.parse(a) - Date.parse(b);
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}

// sorted orders the records of a page by the column that the address names.
function sorted(o, records, sort) {
  const column = sort && o.columns.find((c) => c.value && c.head === sort.replace(/^-/, ""));
  if (!column) return records;
  const order = [...records].sort((a, b) => compare(column.value(a), column.value(b)));
  return sort.startsWith("-") ? order.reverse() : order;
}

// headCells returns the headers; the headers of columns with a value sort the list.
function headCells(state) {
  const { o, params } = state,
    order = params.sort || (params.order ? "" : o.sorted) || "",
    current = order.replace(/^-/, ""),
    descends = order.startsWith("-");
  const cells = state.columns.map((c) => {
    const attributes = { scope: "col", role: "columnheader", class: c.number ? "number" : false };
    if (!c.value) return h("th", attributes, c.head);
    const active = c.head === current;
    const sort = () => {
      const next = active && !descends ? "-" + c.head : active && params.sort ? "" : c.head;
      params.sort = next === o.sorted ? "" : next;
      history.replaceState(null, "", address(o.view, params));
      state.draw();
    };
    return h(
      "th",
      { ...attributes, "aria-sort": active ? (descends ? "descending" : "ascending") : "none" },
      button(c.head, sort, { class: "sort", id: "sort-" + c.head.replace(/\W/g, "-") })
    );
  });
  return state.picking ? [h("td", { role: "cell" }), ...cells] : cells;
}

function drawPage(state) {
  const { o, ctx, params, found } = state;
  const records = sorted(o, o.group ? o.group(found.data, params.open) : found.data, params.sort);
  // A column without a value on this page gives its room to the others.
  // So does the account if only one is listed.
  const filled = (c) =>
    !(c.head === "Account" && params.account) && (!c.value || records.some((x) => (c.value(x) ?? "") !== ""));
  state.columns = o.columns.filter((c, i) => i === 0 || (!c.exported && filled(c)));
  state.picking = picks(o) && records.some((x) => o.selectable(x));
  const present = new Map(records.map((x) => [keyOf(o, x), x]));
  for (const id of ctx.chosen.keys()) {
    if (present.has(id) && o.selectable(present.get(id))) ctx.chosen.set(id, present.get(id));
    else ctx.chosen.delete(id);
  }
  const boxes = [],
    rows = records.flatMap((x) => drawRow(state, x, boxes));
  const every = h("input", {
    type: "checkbox",
    id: "all",
    change: (e) => {
      for (const box of boxes) if (box.checked !== e.target.checked) box.click();
    }
  });
  every.checked = boxes.length > 0 && boxes.every((box) => box.checked);
  const text = "Select all " + (boxes.length < records.length ? o.selects : "on this page");
  state.everyBox = boxes.length > 0 && h("label", { for: "all" }, every, text + " (" + boxes.length + ")");
  state.recount();
  const { cursor, open, sort, ...rest } = params,
    meta = found.meta || {};
  const nothing = meta.searched_to
    ? "Nothing found so far."
    : cursor
      ? "No further records."
      : typeof o.empty === "function"
        ? o.empty(ctx.filter)
        : Object.keys(ctx.filter).length
          ? o.empty
          : o.empty.replace("match the filters", "yet");
  return [
    rows.length ? frame(o.title, headCells(state), rows) : h("div", { class: "empty" }, nothing),
    meta.searched_to &&
      h("p", { class: "hint" }, "Searched back to ", stamp(meta.searched_to), " UTC. “Older” continues there."),
    params.sort && meta.next && h("p", { class: "hint" }, "Sorted within this page."),
    h(
      "p",
      { class: "bar" },
      cursor && link(o.view, { ...rest, sort }, "First page"),
      meta.next && link(o.view, { ...rest, sort, cursor: meta.next }, "Older")
    )
  ];
}

// classOf returns the classes of a cell.
const classOf = (c, i) =>
  [
    c.number && "number",
    c.rest && "rest",
    c.roomy && "roomy",
    i === 0 && "lead",
    c.first && "first",
    c.unlabelled && "unlabelled",
    c.head === "State" && "pill"
  ]
    .filter(Boolean)
    .join(" ");

// drawRow returns the row of a record and, if it is open, a second row with the whole record.
function drawRow(state, x, boxes) {
  const { o, ctx, params, opened } = state,
    id = keyOf(o, x),
    fresh = ctx.fresh && ctx.fresh.has(id);
  const box =
    picks(o) &&
    o.selectable(x) &&
    h("input", {
      type: "checkbox",
      "aria-label": "Select " + id,
      change: (e) => {
        e.target.checked ? ctx.chosen.set(id, x) : ctx.chosen.delete(id);
        state.recount();
      }
    });
  if (box) {
    box.checked = ctx.chosen.has(id);
    boxes.push(box);
  }
  const name = o.detail && o.name(x),
    label = name ? false : "Details of " + id;
  const toggle =
    o.detail && button(name, () => unfold(), { class: "open", id: "open-" + id, title: id, "aria-label": label });
  const mark = fresh && h("span", { class: "state good" }, "new");
  const cells = state.columns.map((c, i) =>
    cell(
      i === 0 ? [toggle, " ", c.cell(x), mark] : c.cell(x),
      c.head,
      classOf(c, i) || false
    )
  );
  const selects = state.picking && cell(box || "", "Select", "selects");
  const row = h("tr", { role: "row", class: fresh && "fresh" }, selects, cells);
  if (!o.detail) return [row];
  const below = h("tr", { class: "detail", role: "row", hidden: !opened.has(id), id: "of-" + id });
  const fill = () => {
    const span = state.columns.length + (state.picking ? 1 : 0);
    below.replaceChildren(h("td", { colspan: span, role: "cell" }, o.detail(x, ctx)));
  };
  const unfold = () => {
    opened.has(id) ? opened.delete(id) : opened.add(id);
    below.hidden = !opened.has(id);
    toggle.setAttribute("aria-expanded", String(!below.hidden));
    if (!below.hidden) fill();
    history.replaceState(null, "", address(o.view, { ...params, open: below.hidden ? "" : id }));
  };
  toggle.setAttribute("aria-expanded", String(opened.has(id)));
  toggle.setAttribute("aria-controls", "of-" + id);
  if (opened.has(id)) fill();
  return [row, below];
}

// csvCell writes a value for a file. A text that a spreadsheet would run as a formula is
// prefixed with an apostrophe.
function csvCell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

// exportRows saves all records that match as a file.
async function exportRows(o, query, fetchPage, note) {
  try {
    note.replaceChildren(h("p", { class: "hint" }, "Reading…"));
    const columns = o.columns.filter((c) => c.value),
      lines = [columns.map((c) => csvCell(c.head)).join(",")];
    for (let cursor = ""; ;) {
      const found = await fetchPage({ ...query, cursor, limit: 500 });
      lines.push(...found.data.map((x) => columns.map((c) => csvCell(c.value(x))).join(",")));
      cursor = found.meta && found.meta.next;
      if (!cursor || lines.length > exportLimit) break;
    }
    const url = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    const anchor = h("a", { href: url, download: o.view + ".csv", hidden: true });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    note.replaceChildren(
      h("p", { class: "said" }, "Exported " + (lines.length - 1) + (lines.length === 2 ? " row." : " rows."))
    );
  } catch (error) {
    note.replaceChildren(wrong(error));
  }
}

// onSelected and onAll return the buttons above a list, if the reader may use the operation.
export const onSelected = (ctx, operation, text, act) =>
  allowed(operation) &&
  ctx.chosen.size > 0 &&
  button(text + " (" + ctx.chosen.size + ")", (e) => act(e.target), { class: "main" });
export const onAll = (ctx, operation, text, act) =>
  allowed(operation) && Object.keys(ctx.filter).length > 0 && button(text, (e) => act(e.target));
