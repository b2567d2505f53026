// The operator's console: one page over the admin API. What comes from outside
// (texts, payloads, reasons, answers) becomes text nodes and never markup.

// Every operation the page asks for, under its operationId. A test compares this
// table with the gateway's contract, and nothing else here names a path.
const api = {
  "ready": "GET /readyz",
  "metrics": "GET /metrics",
  "listBreakers": "GET /admin/breakers",
  "closeBreaker": "DELETE /admin/breakers/{endpoint}",
  "listEvents": "GET /admin/events",
  "getEvent": "GET /admin/events/{event}",
  "replayEvents": "POST /admin/events/replay",
  "listDeliveries": "GET /admin/deliveries",
  "replayDeliveries": "POST /admin/deliveries/replay",
  "listMessages": "GET /admin/messages",
  "resendMessages": "POST /admin/messages/resend",
  "listCredit": "GET /admin/credit",
  "explainRelay": "POST /admin/relays/explain",
  "listRulesOfAccount": "GET /admin/rules",
  "tryRuleOfAccount": "POST /admin/rules/try",
  "listAlarmsOfAccount": "GET /admin/alarms",
  "acknowledgeAlarm": "PATCH /admin/alarms/{alarm_id}",
  "tryDecoder": "POST /admin/decoders/try",
  "showDecoder": "GET /admin/decoders/{decoder_id}",
  "getInventory": "GET /admin/inventory"
};

// What the lists are filtered by: the words there are, or a kind of input. The
// test compares these as well.
const filters = {
  "listEvents": {
    "state": ["done", "quarantined", "unrouted", "pending"], "kind": ["uplink", "sms", "receipt", "cdr"],
    "account": "text", "source": "text", "device": "text", "from": "time", "to": "time", "q": "text"
  },
  "listDeliveries": {
    "state": ["queued", "retrying", "delivered", "simulated", "dead"], "kind": ["relay", "receipt", "callback", "notice", "rule"],
    "waits_for": ["breaker", "turn"], "account": "text", "relay": "text", "number": "text", "target": "text", "reason": "text",
    "from": "time", "to": "time", "q": "text"
  },
  "listMessages": {
    "account": "text",
    "state": ["pending", "sending", "accepted", "buffered", "delivered", "undelivered", "rejected", "unknown", "removed"],
    "number": "text"
  },
  "listRulesOfAccount": { "account": "text" },
  "listAlarmsOfAccount": {
    "account": "text", "state": ["raised", "cleared"], "rule_id": "text", "device_id": "text", "from": "time", "to": "time"
  }
};

const labels = {
  state: "State", kind: "Kind", account: "Account (name or id)", source: "Source", device: "Device", from: "From (UTC)", to: "To (UTC)", q: "Holds the text",
  waits_for: "Waits for", relay: "Relay", number: "Originator or destination", target: "Target", reason: "Reason",
  rule_id: "Rule", device_id: "Device (its id)"
};

const colours = {
  ok: "good", ready: "good", done: "good", delivered: "good", accepted: "good", added: "good",
  raised: "bad", cleared: "good", forwarded: "good", enabled: "good", disabled: "plain",
  down: "bad", "not ready": "bad", dead: "bad", quarantined: "bad", rejected: "bad", undelivered: "bad",
  unrouted: "warn", retrying: "warn", pending: "warn", unknown: "warn", simulated: "warn", embedded: "plain", changed: "warn"
};

const tokenKey = "penstock-admin-token";
const pageSize = 50;
const countUpTo = 50;    // of the tiles: "50+" beyond
const countAtMost = 20;  // pages of 1000 that a confirmation counts
const refreshEvery = 5000;

// ---- the document

const byId = (id) => document.getElementById(id);

// h makes an element. Functions among the properties listen; children that are
// text stay text.
function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (typeof value === "function") el.addEventListener(name, value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) el.setAttribute(name, value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== ""));
  return el;
}

const state = (word) => word && h("span", { class: "state " + (colours[word] || "plain") }, word);
const stamp = (text) => text && h("time", { datetime: text, title: text }, text.replace("T", " ").replace(/(\.\d+)?Z$/, ""));
const code = (text) => text && h("code", null, text);
const pre = (text) => h("pre", { tabindex: 0 }, text);
const long = (text) => text && h("span", { class: "long" }, text);
const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
const plural = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
const link = (view, params, ...text) => h("a", { href: address(view, params) }, text);
const told = () => h("div", { role: "status" }); // where an action tells how it went
const button = (text, click, props) => h("button", { type: "button", click, ...props }, text);
const wrong = (error) => h("p", { class: "wrong", role: "alert" }, error.message);
const json = (value) => JSON.stringify(value, null, 2);

// pairs is a list of names and what they are; what is empty is left out.
function pairs(entries) {
  const shown = entries.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return h("dl", null, shown.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

// cell is one of a table; on a phone it names its column.
function cell(content, head, kind) {
  const inside = h("div", null, content);
  return h("td", { role: "cell", class: kind, "data-label": head }, inside.firstChild && inside);
}

// table makes one with headers; a head that ends in # is of numbers. The roles
// stay what they are when a phone shows rows as cards.
function table(label, heads, rows, empty) {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  const name = (i) => heads[i].replace("#", "");
  const kind = (i) => (heads[i].endsWith("#") ? "number" : false);
  const head = h("tr", { role: "row" }, heads.map((_, i) => h("th", { scope: "col", role: "columnheader", class: kind(i) }, name(i))));
  const line = (cells) => (cells instanceof Node ? cells : h("tr", { role: "row" },
    cells.map((c, i) => cell(c, name(i), kind(i)))));
  return h("div", { class: "scroll" }, h("table", { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" }, head), h("tbody", { role: "rowgroup" }, rows.map(line))));
}

// field is a labelled input of a filter or a form.
function field(name, text, kind, value, props) {
  const { blank = "any", ...rest } = props || {};
  let input;
  if (Array.isArray(kind)) {
    input = h("select", { name, ...rest }, kind.map((word) => h("option", { value: word }, word || blank)));
    input.value = value || kind[0];
  } else {
    const types = { number: { inputmode: "numeric" }, time: { type: "datetime-local", step: 1 }, area: { spellcheck: "false" } };
    input = h(kind === "area" ? "textarea" : "input", { name, autocomplete: "off", ...types[kind], ...rest });
    input.value = kind === "time" ? (value || "").replace(/Z$/, "") : value || "";
  }
  return h("label", { class: kind === "area" ? "wide" : false }, text, input);
}

// valuesOf reads a form; times become RFC 3339 in UTC, what is empty is left out.
function valuesOf(form) {
  const out = {};
  for (const input of form.elements) {
    let value = input.name ? input.value : "";
    if (input.type === "datetime-local" && value) value = (value.length === 16 ? value + ":00" : value) + "Z";
    if (input.tagName !== "TEXTAREA") value = value.trim();
    if (value !== "") out[input.name] = value;
  }
  return out;
}

// redraw replaces what a place shows and leaves the focus where it was.
function redraw(place, nodes) {
  const all = () => [...place.querySelectorAll("a, button, input, summary, pre")];
  const held = document.activeElement, at = all().indexOf(held);
  place.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
  if (at >= 0) ((held.id && byId(held.id)) || all()[at] || byId("main")).focus({ preventScroll: true });
}

// reading reports whether the reader has selected text in a place.
const reading = (place) => !getSelection().isCollapsed && place.contains(getSelection().anchorNode);

// ask has the operator confirm; it holds true only after the button was pressed.
// Each question is a dialog of its own, so that none hears another's end.
function ask(title, text, yes) {
  const dialog = h("dialog", { "aria-labelledby": "asked" }, h("form", { method: "dialog" }, h("h2", { id: "asked" }, title), [text].flat().map((t) => h("p", null, t)),
    h("p", { class: "bar" }, h("button", { type: "submit", value: "yes", class: "main" }, yes), h("button", { type: "submit", value: "no" }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue === "yes"); }));
}

// during shows beside its button what became of an action, good or bad.
async function during(clicked, place, action) {
  if (clicked.getAttribute("aria-busy")) return; // not disabled: it would lose the focus
  clicked.setAttribute("aria-busy", "true");
  place.replaceChildren(h("p", { class: "hint" }, "Working…"));
  try {
    const outcome = await action();
    place.replaceChildren(...!outcome ? [] : [outcome instanceof Node ? outcome : h("p", { class: "said" }, outcome)]);
  } catch (error) {
    place.replaceChildren(...error.name === "AbortError" ? [] : [wrong(error)]);
  } finally {
    if (place.firstChild) place.scrollIntoView({ block: "nearest" });
    clicked.removeAttribute("aria-busy");
  }
}

// ---- the gateway

const token = () => sessionStorage.getItem(tokenKey) || "";

// words says what an answer that is no success means.
function words(status, data) {
  const lines = [data && data.message ? data.message : "The gateway answered " + status + "."];
  for (const [name, problems] of Object.entries((data && data.errors) || {})) lines.push(name + ": " + problems.join("; "));
  if (status === 503) lines.push("Nothing was changed; try again in some seconds.");
  return lines.join("\n");
}

// call asks for an operation of the table. An error's message is for the reader.
async function call(name, { path = {}, query = {}, body, accept = [], signal } = {}) {
  const [method, template] = api[name].split(" ");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined)).toString();
  const url = template.replace(/\{(\w+)\}/g, (_, key) => encodeURIComponent(path[key])) + (asked && "?" + asked);
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer, text;
  try {
    if (template.startsWith("/admin") || template === "/readyz") headers.Authorization = "Bearer " + token();
    answer = await fetch(url, { method, headers, signal, cache: "no-store", credentials: "omit", body: body === undefined ? undefined : JSON.stringify(body) });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The gateway does not answer. Is it running, and can this machine reach it?");
  }
  const data = (answer.headers.get("Content-Type") || "").startsWith("application/json") && text ? JSON.parse(text) : text;
  if (answer.status === 401) leave("The gateway refused the token. Sign in again.");
  if (!answer.ok && !accept.includes(answer.status)) {
    throw Object.assign(new Error(words(answer.status, data)), { status: answer.status });
  }
  return data;
}

// readMetrics reads our own lines: name → label → value.
function readMetrics(text) {
  const out = {};
  for (const line of text.split("\n")) {
    const m = /^(penstock_\w+)(?:\{\w+="((?:[^"\\]|\\.)*)"\})? (\S+)$/.exec(line);
    if (m) (out[m[1]] ||= {})[(m[2] || "").replace(/\\(.)/g, "$1")] = Number(m[3]);
  }
  return out;
}

// ---- now

const simulates = (note) => /simulat/.test(note || "");

function backends(ready) {
  const rows = Object.entries(ready.backends).map(([name, b]) => [
    name, state(b.status), [(b.note || "").replace(/(, )?simulated$/, ""), " ", simulates(b.note) && state("simulated")], long(b.error)]);
  const simulated = Object.entries(ready.backends).filter(([, b]) => simulates(b.note)).map(([name]) => name);
  return [
    h("h2", null, "Back ends ", state(ready.status)),
    simulated.length > 0 && h("p", { class: "note" }, "Simulated: " + simulated.join(", ") + ". What they are given reaches nobody outside this gateway."),
    table("Back ends", ["Back end", "State", "What it is", "Why not"], rows, "No back ends."),
  ];
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i ? n.toFixed(1) : n) + " " + units[i];
}

function traffic(m) {
  const of = (name, kind) => (m[name] || {})[kind] || 0;
  const rows = Object.keys(m["penstock_lag"] || {}).map((kind) => [
    link("events", { kind }, kind), of("penstock_accepted_total", kind), of("penstock_processed_total", kind), of("penstock_quarantined_total", kind),
    of("penstock_lag", kind), of("penstock_waiting", kind) ? state("down") : "no", bytes(of("penstock_journal_bytes", kind)),
    of("penstock_journal_gaps", kind) ? h("span", { class: "state bad" }, of("penstock_journal_gaps", kind)) : 0]);
  return [h("h2", null, "Journal"), h("p", { class: "hint" }, "Accepted, processed and quarantined are counted since the start. Gaps are parts of the journal that could not be read at the start."),
    table("Journal", ["Traffic", "Accepted#", "Processed#", "Set aside#", "Not processed yet#", "Waits for a back end", "On disk#", "Gaps#"], rows, "No journal.")];
}

function stored(m) {
  const kinds = Object.entries(m["penstock_stored_bytes"] || {}).sort((a, b) => b[1] - a[1]);
  const total = kinds.reduce((sum, [, n]) => sum + n, 0);
  return [h("h2", null, "Records on disk"), h("p", { class: "hint" }, `${bytes(total)} with indexes, measured each hour. The journal is not counted here.`),
    table("Records on disk", ["Kind", "Size#"], kinds.map(([kind, n]) => [kind, bytes(n)]), "Not measured yet: the first time is ten seconds after the start.")];
}

function queue(m) {
  const n = (name) => (m[name] || {})[""] || 0;
  const row = [n("penstock_deliveries_running"), n("penstock_deliveries_waiting"), n("penstock_deliveries_parked"), n("penstock_deliveries_delivered_total"),
    n("penstock_deliveries_retried_total"), n("penstock_deliveries_dead_total"), n("penstock_deliveries_unsaved")];
  return [h("h2", null, "Delivery queue"), h("p", { class: "hint" }, "Of this gateway; delivered, to repeat and given up are counted since its start."),
    table("Delivery queue", ["Under way#", "Wait for a first attempt#", "Wait for a breaker#", "Delivered#", "Attempts to repeat#", "Given up#", "Outcomes not saved#"], [row], "")];
}

function carriers(m, ready) {
  const of = (name, carrier) => ((m[name] || {})[carrier] ?? "");
  const names = new Set(["penstock_carrier_bound", "penstock_carrier_sending_waiting"].flatMap((name) => Object.keys(m[name] || {})));
  const rows = [...names].sort().map((c) => [[c, " ", simulates((ready.backends["carrier " + c] || {}).note) && state("simulated")], of("penstock_carrier_bound", c) === "" ? "no bind" : state(of("penstock_carrier_bound", c) ? "ok" : "down"),
    of("penstock_carrier_messages_total", c), of("penstock_carrier_receipts_total", c), of("penstock_carrier_sending_waiting", c),
    of("penstock_carrier_sending_accepted_total", c), of("penstock_carrier_sending_rejected_total", c), of("penstock_carrier_sending_unknown_total", c)]);
  return [h("h2", null, "Carriers"), table("Carriers", ["Carrier", "Bind", "Messages in#", "Receipts in#", "Parts that wait#", "Parts taken#", "Rejected#", "Answer lost#"], rows,
    "No carrier is configured. Carriers that post over HTTP are seen under Events.")];
}

function breakers(list, place, again) {
  const close = (b) => button("Close", async (e) => {
    const sure = await ask("Close this breaker?", [plural(b.waiting, "delivery waits", "deliveries wait") + " for " + b.target + ".", "They are attempted within seconds."], "Close it");
    if (sure) during(e.target, place, async () => { await call("closeBreaker", { path: { endpoint: b.endpoint } }); again(); return "The breaker of " + b.target + " is closed."; });
  });
  const rows = list.map((b) => [long(b.target), b.account, b.relay, long(b.reason), stamp(b.opened_at), stamp(b.probe_at),
    link("deliveries", { waits_for: "breaker", relay: b.relay }, String(b.waiting)), close(b)]);
  return [h("h2", null, "Open breakers"), table("Open breakers", ["Endpoint", "Account", "Relay", "Reason", "Since (UTC)", "Next probe (UTC)", "Waiting#", "Action"], rows,
    "None. An endpoint that fails ten times in a row would be here, with what waits for it.")];
}

// needs are the lists in which something waits for a person, or for its time.
const needs = [
  ["Dead deliveries", "deliveries", "listDeliveries", { state: "dead" }, true], ["To be tried again", "deliveries", "listDeliveries", { state: "retrying" }],
  ["Queued", "deliveries", "listDeliveries", { state: "queued" }], ["Quarantined events", "events", "listEvents", { state: "quarantined" }, true],
  ["Unrouted events", "events", "listEvents", { state: "unrouted" }, true],
];

async function tiles(signal) {
  const counted = await Promise.all(needs.map(([, , op, query]) => call(op, { query: { ...query, limit: countUpTo }, signal })));
  return h("div", { class: "tiles" }, needs.map(([text, view, , query, serious], i) => {
    const n = counted[i].data.length;
    return h("a", { class: "tile" + (serious && n ? " bad" : ""), href: address(view, query) }, h("b", null, counted[i].meta.next ? n + "+" : n), text);
  }));
}

function now(main, params, signal) {
  const counts = h("div"), rest = h("div"), said = told(), when = h("p", { class: "intro" });
  main.append(h("h1", null, "Now"), when, said, counts, rest);
  let round = 0;
  const refresh = async (always) => {
    if (document.hidden && round > 0) return;
    try {
      const [ready, text, open] = await Promise.all([call("ready", { accept: [503], signal }), call("metrics", { signal }), call("listBreakers", { signal })]);
      const m = readMetrics(text);
      if (!reading(rest)) redraw(rest, [backends(ready), breakers(open.data, said, () => refresh(true)), carriers(m, ready), traffic(m), queue(m), stored(m)]);
      if (round % 6 === 0 || always === true) redraw(counts, [await tiles(signal)]); // they cost more than the rest
      when.textContent = "As of " + new Date().toISOString().slice(11, 19) + " UTC; asked again every " + refreshEvery / 1000 + " seconds while this page is in view.";
      round++;
    } catch (error) {
      if (error.name !== "AbortError") when.replaceChildren(wrong(error));
    }
  };
  const every = setInterval(refresh, refreshEvery);
  signal.addEventListener("abort", () => clearInterval(every));
  document.addEventListener("visibilitychange", refresh, { signal });
  return refresh();
}

// ---- lists

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
function listing(o) {
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
const onSelected = (ctx, text, act) => button(text + " (" + ctx.chosen.size + ")", (e) => act(e.target), { disabled: ctx.chosen.size === 0, class: "main" });
const onAll = (ctx, text, act) => button(text, (e) => act(e.target), Object.keys(ctx.filter).length ? {} : { disabled: true, title: "Set a filter first" });

// ---- events

async function replayEvents(clicked, ctx, selection, n) {
  await during(clicked, ctx.said, async () => {
    if (n === undefined) n = (await call("replayEvents", { body: { ...selection, dry_run: true, limit: 1 }, signal: ctx.signal })).count;
    if (n === 0) return "No event matches.";
    const sure = await ask("Replay " + plural(n, "event") + "?", "Each is processed again as if it had just arrived. Readings are overwritten; deliveries that exist are left as they are.", "Replay " + n);
    if (!sure) return "";
    const { count } = await call("replayEvents", { body: selection });
    ctx.again();
    return plural(count, "event is", "events are") + " processed again.";
  });
}

// foretell shows what a replay would change, without changing it.
async function foretell(clicked, ctx, selection) {
  await during(clicked, ctx.said, async () => {
    const r = await call("replayEvents", { body: { ...selection, dry_run: true }, signal: ctx.signal });
    if (!r.events) return plural(r.count, "event") + " would be processed again.";
    const rows = r.data.map((e) => [code(e.id), state(e.state), e.reason, state(e.new_state), e.new_reason, differences(e)]);
    return h("div", { class: "sheet" }, h("h3", null, "A replay would do this; nothing was changed"), pairs([
      ["Selected", plural(r.count, "event") + ", looked into " + r.examined],
      ["Events", r.events.done + " stored, " + r.events.quarantined + " quarantined, " + r.events.differ + " differ from now"],
      ["Readings", r.readings.added + " added, " + r.readings.changed + " changed, " + r.readings.unchanged + " unchanged, " + r.readings.stays + " stay"]]),
    rows.length > 0 && table("What differs", ["Event", "State", "Reason", "New state", "New reason", "Readings"], rows, ""), r.more && h("p", { class: "hint" }, "More events differ than are shown."));
  });
}

const differences = (e) => h("span", null, e.devices.map((d) => [d.identifier + ": ", d.note, d.readings.filter((x) => x.effect !== "unchanged")
  .map((x) => x.key + " " + x.effect + " (" + x.old + " → " + x.new + ")").join(", "), h("br")]));

function eventDetail(e, ctx) {
  const id = { ids: [e.id] };
  return [pairs([["Event", code(e.id)], ["Received", stamp(e.received_at)], ["Kind", e.kind], ["Source", e.source], ["Account", e.account || "not known"],
    ["State", state(e.state)], ["Reason", e.reason], ["Outcome", e.outcome]]),
  h("h3", null, "As it arrived"), pre(e.raw || "(no body)"),
  h("p", { class: "bar" }, ctx && button("Replay this event", (x) => replayEvents(x.target, ctx, id, 1)), ctx && button("What a replay would change", (x) => foretell(x.target, ctx, id)),
    ctx && link("trace", { id: e.id }, "The whole way of it"))];
}

const events = listing({
  view: "events", op: "listEvents", title: "Events", intro: "What arrived at this gateway, newest first, and what became of it. Open one for its body and the reason.",
  empty: "No event matches. Frames, messages, receipts and call records would be here from the moment they are safe on disk.",
  heads: ["Event", "Received (UTC)", "Kind", "Source", "Account", "State", "Reason or outcome"], name: (e) => cut(e.id, 12), selectable: () => true, detail: eventDetail,
  cells: (e) => [stamp(e.received_at), e.kind, e.source, e.account || "", state(e.state), long(cut(e.reason || e.outcome, 160))],
  actions: (ctx) => [onSelected(ctx, "Replay selected", (b) => replayEvents(b, ctx, { ids: [...ctx.chosen.keys()] }, ctx.chosen.size)),
    onAll(ctx, "Replay all that match", (b) => replayEvents(b, ctx, ctx.filter)), onAll(ctx, "What that would change", (b) => foretell(b, ctx, ctx.filter))],
});

// ---- deliveries

const arrived = (d) => d.state === "delivered" || d.state === "simulated";

// countDeliveries counts what a filter selects, page by page.
async function countDeliveries(filter, signal) {
  let n = 0, cursor = "";
  for (let page = 0; page < countAtMost; page++) {
    const found = await call("listDeliveries", { query: { ...filter, cursor, limit: 1000 }, signal });
    n += found.data.length;
    cursor = found.meta.next;
    if (!cursor) return String(n);
  }
  return "more than " + n;
}

async function replayDeliveries(clicked, ctx, chosen, filter) {
  await during(clicked, ctx.said, async () => {
    const again = (chosen || []).filter(arrived).length;
    const n = chosen ? String(chosen.length) : await countDeliveries(filter, ctx.signal);
    if (n === "0") return "No dead delivery matches.";
    const text = ["Each goes out again to where it was to go" + (chosen ? "." : ": everything dead that matches the filters.")];
    if (again) text.push(plural(again, "of them has", "of them have") + " arrived already: the receiver gets it a second time.");
    if (!await ask("Send " + n + (n === "1" ? " delivery" : " deliveries") + " again?", text, "Replay " + n)) return "";
    const { count } = await call("replayDeliveries", { body: chosen ? { ids: chosen.map((d) => d.id), include_delivered: again > 0 } : filter });
    ctx.again();
    return plural(count, "delivery is", "deliveries are") + " back at work.";
  });
}

function attempts(d) {
  const rows = d.attempts.map((a, i) => [i + 1, stamp(a.at), a.duration_ms + " ms", a.status || "no answer", long(a.error), a.response && pre(a.response)]);
  return [h("h3", null, "Attempts"), table("Attempts of " + d.id, ["No.#", "At (UTC)", "Took#", "Status", "Error", "Start of the answer"], rows, "No attempt was made yet.")];
}

const waitsFor = (d) => (d.waits_for ? (d.waits_for === "breaker" ? "the breaker of its endpoint" : "its turn at an ordered endpoint") : stamp(d.next_attempt_at));

function deliveryDetail(d, ctx) {
  return [pairs([["Delivery", code(d.id)], ["Kind", d.kind], ["Account", d.account], [d.kind === "rule" ? "Rule" : "Relay", d.relay], [d.kind === "rule" ? "Alarm or frame" : "Message", code(d.message_id)], ["From", d.originator], ["To", d.destination],
    ["Target", code(d.target)], ["State", state(d.state)], ["Reason", d.reason], ["Created", stamp(d.created_at)], ["Waits for", waitsFor(d)]]),
  attempts(d),
  h("p", { class: "bar" }, ctx && d.state === "dead" && button("Replay this delivery", (x) => replayDeliveries(x.target, ctx, [d])),
    ctx && arrived(d) && button("Send it once more", (x) => replayDeliveries(x.target, ctx, [d])),
    ctx && d.kind === "relay" && link("trace", { id: d.message_id }, "The whole way of its message"))];
}

const deliveries = listing({
  view: "deliveries", op: "listDeliveries", title: "Deliveries", intro: "What goes out to endpoints and mailboxes, newest first. Open one for its attempts. The dead wait here until a person decides.",
  empty: "No delivery matches. What relays, rules, delivery reports and callbacks send would be here, with every attempt.",
  heads: ["Delivery", "Created (UTC)", "Kind", "Account", "Relay or rule", "Target", "State", "Attempts", "Reason"], name: (d) => cut(d.id, 12),
  selectable: (d) => d.state === "dead" || arrived(d), detail: deliveryDetail,
  cells: (d) => [stamp(d.created_at), d.kind, d.account, d.relay, long(cut(d.target, 80)), state(d.state), d.attempts.length, long(cut(d.reason, 160))],
  actions: (ctx) => [onSelected(ctx, "Replay selected", (b) => replayDeliveries(b, ctx, [...ctx.chosen.values()])),
    (!ctx.filter.state || ctx.filter.state === "dead") && onAll(ctx, "Replay all dead that match", (b) => replayDeliveries(b, ctx, null, { ...ctx.filter, state: "dead" }))].filter(Boolean),
});

// ---- messages

const lost = (m) => m.parts.filter((p) => p.state === "unknown").length;

async function resend(clicked, ctx, chosen) {
  const parts = chosen.reduce((n, m) => n + lost(m), 0);
  await during(clicked, ctx.said, async () => {
    const sure = await ask("Send " + plural(parts, "part") + " of " + plural(chosen.length, "message") + " again?",
      "The carrier's answer was lost, so the phone may have them already and get them twice. Nothing is charged.", "Send " + parts);
    if (!sure) return "";
    const { count } = await call("resendMessages", { body: { account: ctx.filter.account, ids: chosen.map((m) => String(m.id)) } });
    ctx.again();
    return plural(count, "part is", "parts are") + " sent again.";
  });
}

function messageDetail(m, ctx) {
  const rows = m.parts.map((p) => [p.id, [state(p.state), " ", p.simulated && p.state !== "simulated" && state("simulated")], p.carrier, code(p.carrier_id), p.reason, p.report, stamp(p.changed_at), pre(p.data)]);
  return [pairs([["Message", m.id], ["From", m.originator || "the carrier's own"], ["To", m.destination], ["Coding", m.coding], ["Taken over", m.origin + ", from " + m.ip],
    ["Received", stamp(m.received_at)], ["To be sent", stamp(m.scheduled_for)], ["Reports to", code(m.report_to)], ["Reported as", m.code || "nothing yet"]]),
  h("h3", null, "Parts"), table("Parts of " + m.id, ["Part", "State", "Carrier", "Carrier's id", "Reason", "Report", "Changed (UTC)", "Text"], rows, "No parts."),
  lost(m) > 0 && h("p", { class: "bar" }, button("Send the lost parts again", (x) => resend(x.target, ctx, [m])))];
}

// credit shows an account's balance, and on demand what changed it.
function credit(filter, signal) {
  const place = h("div", { class: "sheet" });
  const show = async () => {
    const found = await call("listCredit", { query: { account: filter.account, limit: pageSize }, signal });
    const rows = found.data.map((c) => [stamp(c.at), c.credits, c.balance, c.reason, c.reference]);
    place.replaceChildren(h("details", null, h("summary", null, "Account " + filter.account + " has " + plural(found.meta.balance, "credit")),
      table("Credit", ["At (UTC)", "Change#", "Balance#", "Reason", "Reference"], rows, "No change yet."), found.meta.next && h("p", { class: "hint" }, "The newest " + rows.length + " changes are shown.")));
  };
  show().catch((error) => error.name !== "AbortError" && place.replaceChildren(wrong(error)));
  return place;
}

const messages = listing({
  view: "messages", op: "listMessages", title: "Messages", intro: "What an account sends, newest first, and what became of each part. Lost answers (unknown) need a person; what a carrier rejected is not sent again.",
  lacks: (filter) => !filter.account && "Give an account's name or id: messages are listed by account. The inventory shows them.", head: credit,
  empty: "No message matches. What this account sends over REST or SOAP would be here, with the state of each part.",
  heads: ["Message", "Received (UTC)", "From", "To", "Parts", "States", "Text"], name: (m) => String(m.id), selectable: (m) => lost(m) > 0, detail: messageDetail,
  cells: (m) => [stamp(m.received_at), m.originator, m.destination, m.parts.length, [...new Set(m.parts.map((p) => p.state))].map((s) => [state(s), " "]), long(cut(m.parts.map((p) => p.data).join(""), 80))],
  actions: (ctx) => [onSelected(ctx, "Send lost parts again", (b) => resend(b, ctx, [...ctx.chosen.values()]))],
});

// ---- trace

// follow finds an event by its own id, a message's or a delivery's.
async function follow(id, signal) {
  const get = (event) => call("getEvent", { path: { event }, signal }).catch((error) => { if (error.status !== 404) throw error; });
  const found = !/^[0-9a-f]{32}$/.test(id) && await get(id); // a delivery's id is 32 digits
  if (found) return { event: found.data };
  const { data } = await call("listDeliveries", { query: { q: id, limit: 20 }, signal });
  const message = data.find((d) => d.id === id && (d.kind === "relay" || d.kind === "rule"));
  const other = message && await get(message.message_id);
  return other ? { event: other.data } : { deliveries: data.filter((d) => d.id === id || d.message_id === id) };
}

const step = (s) => h("li", null, h("p", null, s.at ? stamp(s.at) : h("span", { class: "hint" }, "no time is kept")), h("p", null, h("b", null, s.step)), h("p", null, s.text));

function way({ event, deliveries: found }) {
  const list = event ? event.deliveries : found;
  const out = event ? [h("h2", null, "The way of it"), h("ol", { class: "way sheet" }, event.trace.map(step)), h("h2", null, "The event"), h("div", { class: "sheet" }, eventDetail(event))] : [];
  if (!event && list.length === 0) return [h("p", { class: "empty" }, "Neither an event of this gateway nor a delivery has this id. Each gateway knows the events of its own journal, for as long as they are kept.")];
  if (list.length) out.push(h("h2", null, "Deliveries"), list.map((d) => h("div", { class: "sheet" }, deliveryDetail(d), h("p", null, link("deliveries", { q: d.id, open: d.id }, "Open under Deliveries")))));
  return out;
}

// asking makes a view of a form whose answer stands below it; what the address
// holds is asked at once.
function asking(o) {
  return async (main, params, signal) => {
    const said = told(), answer = h("div", { id: "answer" });
    const form = h("form", { class: "fields sheet", "aria-label": o.title, submit: (e) => { e.preventDefault(); run(true); } }, o.fields(params),
      h("p", { class: "bar wide" }, h("button", { type: "submit", class: "main", id: "go" }, o.go), o.more && o.more(() => form, said, signal)));
    const run = (remember) => during(form.querySelector("#go"), said, async () => {
      answer.replaceChildren();
      const values = valuesOf(form);
      const here = address(o.view, Object.fromEntries(Object.entries(values).filter(([name]) => name !== "source")));
      if (remember && here !== location.hash) history.pushState(null, "", here);
      redraw(answer, await o.ask(values, signal));
    });
    main.append(h("h1", null, o.title), h("p", { class: "intro" }, o.intro), form, said, answer);
    if (o.ready(params)) await run(false);
  };
}

const trace = asking({
  view: "trace", title: "Trace", intro: "The whole way of one thing: what arrived, how it was read and routed, and every delivery with every attempt.", go: "Follow",
  fields: (p) => field("id", "Id of an event, a message or a delivery", "text", p.id, { required: true }), ready: (p) => p.id, ask: async (v, signal) => way(await follow(v.id || "", signal)),
});

// ---- explain

function request(r) {
  const mail = r.mail && [h("h3", null, "Mail to " + r.mail.to), pairs([["Subject", r.mail.subject], ...Object.entries(r.mail.headers)]), pre(r.mail.text)];
  const sim = r.sim && [h("h3", null, "To the SIM " + r.sim.iccid), pre(json(r.sim))];
  const sms = r.sms && [h("h3", null, "SMS to " + r.sms.to), pairs([["From", r.sms.originator || "the carrier's own originator"]]), pre(r.sms.text)];
  const http = r.method && [h("h3", null, r.method + " request"), pre(r.url), pairs(Object.entries(r.headers || {})), r.body && pre(r.body)];
  return h("div", { class: "sheet" }, r.refused && h("p", { class: "wrong" }, "It would not be made: " + r.refused), http, mail, sim, sms);
}

function explained(e) {
  const m = e.matched;
  const verdict = m ? [state("done"), " Taken by the " + m.kind + " relay " + m.id + " of account " + m.account + ": it " + m.why + ". Action " + m.action + "."] : [state(e.state), " Nobody takes it: " + (e.reason || e.outcome)];
  const rows = e.considered.map((c) => [c.kind, c.id, c.account, c.why, c.filter ? [code(c.filter), c.holds ? " holds" : " does not hold"] : ""]);
  return [h("h2", null, "Verdict"), h("p", { class: "sheet", id: "verdict" }, verdict, e.joined && h("span", { class: "hint" }, " It is part " + e.joined.part + " of " + e.joined.total + "; missing: " + e.joined.missing.join(", ") + ".")),
    m && m.parameters.length > 0 && pairs([["Parameters", m.parameters.map((p) => pre(p))], ["Condition", code(m.filter)]]),
    h("h2", null, "Relays whose number or prefix fits"), table("Relays considered", ["Kind", "Relay", "Account", "Why", "Condition"], rows, "None. Relays of this number or a prefix of it would be here, the first that is taken first."),
    h("h2", null, "What would go out"), e.requests.length ? [h("p", { class: "hint" }, "Exactly as it would go out now, secrets included. Nothing was saved or sent."), e.requests.map(request)] : h("p", { class: "empty" }, "Nothing."),
    h("h2", null, "The message as relays see it"), pre(json(e.message))];
}

const explain = asking({
  view: "explain", title: "Explain", intro: "Which relay takes an inbound message, why the others do not, and the exact request. Nothing is saved or sent.", go: "Explain",
  fields: (p) => [field("to", "To (destination)", "text", p.to, { required: true, inputmode: "tel" }), field("from", "From (originator)", "text", p.from || "447700900123", { required: true }),
    field("account", "Account (empty: all)", "text", p.account), field("text", "Text", "area", p.text || (p.data ? "" : "Test")), field("data", "or octets in hex", "text", p.data),
    field("udh", "User data header, hex", "text", p.udh), field("coding", "Coding", ["", "7", "8", "16"], p.coding, { blank: "by the text" })],
  ready: (p) => p.to,
  ask: async (v, signal) => {
    const body = { ...v };
    if (body.coding) body.coding = Number(body.coding);
    return explained(await call("explainRelay", { body, signal }));
  },
});

// ---- try

const valueOf = (v) => (v.text === undefined ? String(v.value) : v.text);

function tried(f) {
  const problems = f.errors.map((e) => e.message + (e.line ? " (line " + e.line + (e.column ? ", column " + e.column : "") + ")" : ""));
  const was = (r) => f.stored.find((s) => s.sensor_id === r.sensor_id && s.key === r.key && s.time === r.time);
  const readings = f.readings.map((r) => [r.key, valueOf(r), r.sensor_type_id, stamp(r.time), [state(r.effect), was(r) && " stored today: " + valueOf(was(r))]]);
  return h("div", { class: "sheet" }, pairs([["Device", f.identifier], ["Sender", f.sender], ["Time", stamp(f.time)], ["fPort", f.fPort], ["Payload", code(f.payload)], ["Took", f.took_us + " µs"], ["Event", f.event && link("trace", { id: f.event }, f.event)], ["Note", f.note]]),
    problems.map((p) => h("p", { class: "wrong" }, p)), f.warnings.map((w) => h("p", { class: "note" }, w)), f.refused && h("p", { class: "note" }, "Nothing would be stored: " + f.refused),
    h("h3", null, "Values"), table("Values", ["Key", "Value", "Time (UTC)"], f.values.map((v) => [v.key, valueOf(v), v.time ? stamp(v.time) : "the frame's"]), "The decoder gave none."),
    h("h3", null, "What sensors would get"), table("Readings", ["Key", "Value", "Sensor type", "Time (UTC)", "Against today"], readings, "No sensor would get anything."));
}

// trialOf makes the request of the form.
function trialOf(v) {
  const body = {};
  for (const name of ["decoder_id", "device_id", "codec", "source"]) if (v[name]) body[name] = v[name];
  if (v.account) body.account = v.account;
  if (v.last) body.last = Number(v.last);
  if (!v.payload) return body;
  const frame = v.fPort ? { fPort: Number(v.fPort) } : {};
  frame[v.form] = v.payload;
  if (v.form === "values" || v.form === "body") {
    try { frame[v.form] = JSON.parse(v.payload); } catch (error) {
      if (v.form === "values") throw new Error("Values are a JSON object: " + error.message);
    }
  }
  return { ...body, frames: [frame] };
}

// loadSource fetches a stored decoder, so that its source can be tried changed.
const loadSource = (formOf, said, signal) => button("Load the decoder's source", (e) => during(e.target, said, async () => {
  const v = valuesOf(formOf());
  if (!v.decoder_id) return h("p", { class: "wrong", role: "alert" }, "Name a decoder first.");
  const d = await call("showDecoder", { path: { decoder_id: v.decoder_id }, query: { account: v.account }, signal });
  formOf().elements.codec.value = d.codec;
  formOf().elements.source.value = d.source;
  return d.name + ": " + d.codec + (d.source ? "; its source can be changed below." : ", which has no source.");
}));

const tryOut = asking({
  view: "try", title: "Try", intro: "A decoder on a payload. Nothing is stored. Name a stored decoder or a device, or give a codec and its source.", go: "Try", more: loadSource,
  fields: (p) => [field("decoder_id", "Decoder", "text", p.decoder_id), field("device_id", "or device", "text", p.device_id), field("account", "Account (if several have it)", "text", p.account),
    field("form", "Payload is", ["hex", "base64", "values", "body"], p.form), field("fPort", "fPort", "number", p.fPort), field("last", "or the device's last frames", "number", p.last),
    field("payload", "Payload (hex, base64, a JSON object of values, or a body as a sender posts it)", "area", p.payload),
    field("codec", "Codec", ["", "json", "cayenne_lpp", "senml", "expr", "javascript"], p.codec, { blank: "the stored one" }), field("source", "Source, in the place of the stored one", "area", p.source)],
  ready: (p) => p.payload || p.last, ask: async (v, signal) => (await call("tryDecoder", { body: trialOf(v), signal })).data.map(tried),
});

// ---- rules and alarms

const devicesOf = (d) => Object.entries(d).map(([name, value]) => name + " " + [value].flat().join(", ")).join("; ") || "all";

function ruleDetail(r) {
  const rows = r.actions.map((a) => [a.action, a.parameters.map((p) => h("div", null, code(p))), code(a.body), a.originator]);
  return [pairs([["Rule", code(r.id)], ["Name", r.name], ["Looks at", r.on], ["Devices", devicesOf(r.devices)], ["When", code(r.when)], ["Clear", code(r.clear)], ["For", r.for], ["Silent for", r.silent_for],
    ["Repeat", r.repeat], ["Batch", r.batch && [r.batch.count && plural(r.batch.count, "frame"), r.batch.every].filter(Boolean).join(" or ")], ["Ordered", r.ordered && "yes"],
    ["Failures", r.failures.count > 0 && r.failures.count + " since it was changed; the last: " + r.failures.last], ["Created", stamp(r.created_at)], ["Changed", stamp(r.updated_at)]]),
  h("h3", null, "Actions"), table("Actions of " + r.id, ["Action", "Parameters", "Body", "Originator"], rows, "None."),
  h("p", { class: "bar" }, link("alarms", { account: r.account, rule_id: r.id }, "Its alarms"), link("deliveries", { account: r.account, relay: r.id, kind: "rule" }, "Its deliveries"),
    link("tryrule", { account: r.account, rule_id: r.id }, "Try it"))];
}

const rules = listing({
  view: "rules", op: "listRulesOfAccount", title: "Rules", intro: "What follows from the frames of an account's devices. The account changes its rules over REST, an inventory declares them.",
  lacks: (filter) => !filter.account && "Give an account's name or id: rules are listed by account. The inventory shows them.",
  empty: "The account has no rule. One that raises alarms or forwards readings would be here.",
  heads: ["Rule", "Name", "Looks at", "Condition", "Actions", "State", "Failures"], name: (r) => cut(r.id, 26), selectable: () => false, detail: ruleDetail,
  cells: (r) => [r.name, r.on, code(r.when ? cut(r.when, 80) : r.silent_for || ""), [...new Set(r.actions.map((a) => a.action))].join(", "), state(r.enabled ? "enabled" : "disabled"), r.failures.count || ""],
  actions: () => [],
});

async function acknowledge(clicked, ctx, chosen, note) {
  await during(clicked, ctx.said, async () => {
    for (const a of chosen) await call("acknowledgeAlarm", { path: { alarm_id: a.id }, body: { account: a.account, acknowledged: true, note } });
    ctx.again();
    return plural(chosen.length, "alarm is", "alarms are") + " acknowledged.";
  });
}

function alarmDetail(a, ctx) {
  const rows = Object.entries(a.readings).map(([key, v]) => [key, valueOf(v) + (v.units && " " + v.units)]);
  const note = field("note", "Note", "text", a.note, { maxlength: 500 });
  return [pairs([["Alarm", code(a.id)], ["Rule", code(a.rule_id)], ["Device", code(a.device_id)], ["State", state(a.state)], ["Raised", stamp(a.raised_at)], ["Cleared", stamp(a.cleared_at)],
    ["Acknowledged", a.acknowledged_at && [stamp(a.acknowledged_at), " by " + a.acknowledged_by]], ["Note", a.note]]),
  h("h3", null, "Readings of the uplink that raised it"), table("Readings of " + a.id, ["Key", "Value"], rows, "None: no uplink raised it."),
  note, h("p", { class: "bar" }, button(a.acknowledged_at ? "Acknowledge again" : "Acknowledge", (x) => acknowledge(x.target, ctx, [a], note.querySelector("input").value.trim()), { class: "main" }),
    link("deliveries", { account: a.account, relay: a.rule_id, q: a.id }, "Its deliveries"), link("tryrule", { account: a.account, rule_id: a.rule_id, device_id: a.device_id }, "Try its rule"))];
}

const alarms = listing({
  view: "alarms", op: "listAlarmsOfAccount", title: "Alarms", intro: "What the rules of an account have raised, newest first. Open one for its readings, and to acknowledge it with a note.",
  lacks: (filter) => !filter.account && "Give an account's name or id: alarms are listed by account. The inventory shows them.",
  empty: "No alarm matches. What rules raise would be here, with its history.",
  heads: ["Alarm", "Raised (UTC)", "Rule", "Device", "State", "Cleared (UTC)", "Acknowledged by", "Note"], name: (a) => cut(a.id, 12), selectable: (a) => !a.acknowledged_at, detail: alarmDetail,
  cells: (a) => [stamp(a.raised_at), a.rule_id, a.device_id, state(a.state), stamp(a.cleared_at), a.acknowledged_by, long(cut(a.note, 80))],
  actions: (ctx) => [onSelected(ctx, "Acknowledge selected", (b) => acknowledge(b, ctx, [...ctx.chosen.values()], ""))],
});

function ruleTrialOf(v) {
  const body = { account: v.account, device_id: v.device_id };
  if (v.last) body.last = Number(v.last);
  if (!v.rule) return { ...body, rule_id: v.rule_id };
  try { return { ...body, rule: JSON.parse(v.rule) }; } catch (error) { throw new Error("A rule is a JSON object: " + error.message); }
}

const triedRule = (f) => h("div", { class: "sheet" }, pairs([["Time", stamp(f.time)], ["Condition", f.matched ? "holds" : "does not hold"], ["What would happen", f.state ? state(f.state) : "nothing"], ["Why", f.why]]), f.requests.map(request));

const tryRule = asking({
  view: "tryrule", title: "Try a rule", intro: "A rule on the last frames of a device, as it would judge them. Nothing is saved or sent. Name a stored rule, or give one as JSON.", go: "Try",
  fields: (p) => [field("account", "Account (name or id)", "text", p.account, { required: true }), field("device_id", "Device (its id)", "text", p.device_id, { required: true }), field("last", "Last frames", "number", p.last || "10"),
    field("rule_id", "Rule", "text", p.rule_id), field("rule", "or a rule, as POST /iot/rules takes it", "area", p.rule)],
  ready: (p) => p.account && p.device_id && (p.rule_id || p.rule),
  ask: async (v, signal) => {
    const found = (await call("tryRuleOfAccount", { body: ruleTrialOf(v), signal })).data;
    return found.length ? found.map(triedRule) : [h("p", { class: "empty" }, "The device has no frames that this rule would look at.")];
  },
});

// ---- inventory

const showAtMost = 200;

function relays(account) {
  const all = Object.entries(account.relays || {}).flatMap(([kind, list]) => (list || []).map((r) => ({ kind, ...r })));
  const rows = all.slice(0, showAtMost).map((r) => [r.kind, r.id, r.number || r.prefix, r.action, (r.parameters || []).map((p) => h("div", null, code(p))), code(r.filter),
    link("explain", { account: String(account.id), to: r.number || r.prefix }, "Explain")]);
  return [h("h3", null, "Relays"), table("Relays", ["Kind", "Relay", "Number or prefix", "Action", "Parameters", "Condition", "Action"], rows, "None.")];
}

function decoders(account) {
  const rows = (account.decoders || []).slice(0, showAtMost).map((d) => [link("try", { account: String(account.id), decoder_id: d.id }, d.id), d.name, d.type, d.codec || "json", (d.sensors || []).map((s) => s.key + " → " + s.sensor_type_id).join(", ")]);
  return [h("h3", null, "Decoders"), table("Decoders", ["Decoder", "Name", "Type", "Codec", "Sensors"], rows, "None.")];
}

// asDeclared is the rest of an account; long lists are cut.
function asDeclared(account) {
  const rest = Object.entries(account).filter(([name]) => name !== "relays" && name !== "decoders")
    .map(([name, value]) => [name, Array.isArray(value) && value.length > showAtMost ? [...value.slice(0, showAtMost), "… " + (value.length - showAtMost) + " more"] : value]);
  return [h("h3", null, "The rest, as declared"), pre(json(Object.fromEntries(rest)))];
}

function accountSheet(a) {
  const n = (list) => (list || []).length;
  const of = a.relays || {};
  const told = [plural(n(a.tokens), "token"), plural(n(of.geo) + n(of.vmn), "relay"), plural(n(a.decoders), "decoder"), plural(n(a.rules), "rule"), plural(n(a.locations), "location"), plural(n(a.sims), "SIM"), plural(n(a.ledgers), "ledger")].join(", ");
  const inside = h("div");
  return h("details", { class: "sheet", toggle: (e) => { if (e.target.open && !inside.firstChild) inside.append(...[relays(a), decoders(a), asDeclared(a)].flat()); } },
    h("summary", null, h("b", null, a.id + " " + a.name), " — " + told), inside);
}

async function inventory(main, params, signal) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…"));
  main.append(h("h1", null, "Inventory"), h("p", { class: "intro" }, "What was declared, secrets masked. It is read only: applying a document changes it (penstock apply), and a mistake in one refuses it whole."), body);
  try {
    const found = await call("getInventory", { signal });
    const types = (found.sensor_types || []).map((s) => [s.id, s.name, s.metric_units, s.imperial_units]);
    body.replaceChildren(h("h2", null, "Accounts"), ...(found.accounts || []).map(accountSheet), ...(found.accounts || []).length ? [] : [h("p", { class: "empty" }, "No account is declared yet. Write an inventory (deploy/inventory.example.yaml shows every field) and apply it: penstock apply -f inventory.yaml")],
      h("h2", null, "Sensor types"), table("Sensor types", ["Id", "Name", "Metric", "Imperial"], types, "None is declared."));
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(wrong(error));
  }
}

// ---- the way around

const views = { now: ["Now", now], events: ["Events", events], deliveries: ["Deliveries", deliveries], messages: ["Messages", messages], rules: ["Rules", rules], alarms: ["Alarms", alarms],
  trace: ["Trace", trace], explain: ["Explain", explain], try: ["Try", tryOut], tryrule: ["Try a rule", tryRule], inventory: ["Inventory", inventory] };

// address is where a view is, with what it shows.
function address(view, params) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null)).toString();
  return "#" + view + (query && "?" + query);
}

function go(view, params) {
  if (location.hash === address(view, params)) route();
  else location.hash = address(view, params);
}

let leaving = new AbortController();

// signIn asks for the token; where to go on is in the address.
function signIn(why) {
  const said = told();
  if (why) said.append(wrong(new Error(why)));
  const submit = (e) => {
    e.preventDefault();
    const input = form.elements.token;
    during(form.querySelector("button"), said, async () => {
      if (!/^[\x21-\x7e]+$/.test(input.value.trim())) throw new Error("A token has no blanks and no letters beyond ASCII.");
      sessionStorage.setItem(tokenKey, input.value.trim());
      try { await call("listBreakers"); } catch (error) { if (error.status !== 401) sessionStorage.removeItem(tokenKey); throw error; }
      route();
    });
  };
  const form = h("form", { class: "sheet narrow", submit, "aria-label": "Sign in" }, h("h1", null, "Sign in"),
    field("token", "Admin token", "text", "", { type: "password", id: "token", required: true, autocomplete: "current-password" }),
    h("p", { class: "hint" }, "It is in the file admin-token of the data directory, or what PENSTOCK_ADMIN_TOKEN says. This tab keeps it until it is closed."),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Sign in")), said);
  byId("main").replaceChildren(form);
  form.elements.token.focus();
}

// leave forgets the token and asks for another.
function leave(why) {
  leaving.abort();
  sessionStorage.removeItem(tokenKey);
  byId("views").hidden = byId("leave").hidden = true;
  signIn(why);
}

// route shows what the address names.
function route() {
  leaving.abort();
  leaving = new AbortController();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  if (!token()) return leave("");
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const here = views[name] ? name : "now";
  byId("views").hidden = byId("leave").hidden = false;
  for (const a of byId("views").children) a.hash === "#" + here ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  document.title = views[here][0] + " · Penstock console";
  byId("main").replaceChildren();
  if (document.activeElement === document.body) byId("main").focus({ preventScroll: true }); // what had the focus is gone
  views[here][1](byId("main"), Object.fromEntries(new URLSearchParams(query || "")), leaving.signal);
}

byId("views").append(...Object.entries(views).map(([view, [title]]) => h("a", { href: "#" + view }, title)));
byId("skip").addEventListener("click", (e) => { e.preventDefault(); byId("main").focus(); }); // the address is the view's
byId("leave").addEventListener("click", () => leave(""));
window.addEventListener("hashchange", route);
route();
