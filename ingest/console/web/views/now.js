// Now: the back ends, the breakers, the carriers, and what the gateway counts.

import { call } from "../core/api.js";
import { button, h, long, reading, redraw, stamp, state, table, told, wrong } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { bytes, plural } from "../core/format.js";
import { poll } from "../core/live.js";
import { address, link } from "../core/router.js";

const countUpTo = 50;    // of the tiles: "50+" beyond
const refreshEvery = 5000;

// readMetrics reads our own lines: name → label → value.
function readMetrics(text) {
  const out = {};
  for (const line of text.split("\n")) {
    const m = /^(penstock_\w+)(?:\{\w+="((?:[^"\\]|\\.)*)"\})? (\S+)$/.exec(line);
    if (m) (out[m[1]] ||= {})[(m[2] || "").replace(/\\(.)/g, "$1")] = Number(m[3]);
  }
  return out;
}

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

export function show(main, params, signal) {
  const counts = h("div"), rest = h("div"), said = told(), when = h("p", { class: "intro" });
  main.append(h("h1", null, "Now"), when, said, counts, rest);
  let round = 0;
  const refresh = async (always) => {
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
  return poll(refresh, { every: refreshEvery, signal });
}
