// Overview: what is down, what waits for a person, and the traffic of this gateway.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { button, h, long, stamp, state, table, told } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { ago, bytes, clock, plural } from "../core/format.js";
import { address, go, link } from "../core/router.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";

const countUpTo = 50; // of the tiles: "50+" beyond

const simulates = (note) => /simulat/.test(note);

// What back ends are to an operator; the names are the gateway's.
const meaning = {
  records: "Database: accounts, devices, messages, deliveries", queue: "Redis: timers and what can be rebuilt", readings: "Readings of devices",
  mail: "Outgoing mail", lookup: "Number lookups", operator: "SIM operator", gateways: "The gateways of this database", ledgers: "Ledgers and their keys",
  "carrier simulator": "Answers sent SMS in the place of a carrier", "journal uplink": "Frames as they arrived", "journal sms": "Inbound SMS as they arrived", "journal receipt": "Delivery receipts as they arrived",
  "journal cdr": "Call and usage records as they arrived",
};

// outage says what is down, since when and what follows from it.
function outage(status) {
  const down = status.backends.filter((b) => b.status === "down");
  if (down.length === 0) return null;
  return h("div", { class: "wrong outage", role: "alert" }, down.map((b) => h("p", null, h("b", null, b.name), b.note && " (" + b.note + ")", " is down since ", stamp(b.since), " UTC, ", ago(b.since), ": ", b.error)),
    !status.ready && h("p", null, "The gateway goes on accepting: what arrives is safe in its journal and is processed when this is over. Lists that need what is down say so; ", link("events", {}, "Events"), " shows the journal."));
}

function backends(status) {
  const rows = status.backends.map((b) => [b.name, [state(b.status), b.optional && b.status === "down" && " not needed"], h("span", { class: "since" }, stamp(b.since), h("span", { class: "hint" }, ago(b.since))),
    [b.note.replace(/(, )?simulated$/, ""), " ", simulates(b.note) && state("simulated")], meaning[b.name] || "", b.last_error && [long(b.last_error), " ", stamp(b.last_error_at)]]);
  const simulated = status.backends.filter((b) => simulates(b.note)).map((b) => b.name);
  return [
    h("h2", null, "Back ends ", state(status.ready ? "ready" : "not ready")),
    simulated.length > 0 && h("p", { class: "note" }, "Simulated: " + simulated.sort().join(", ") + ". What they are given reaches nobody outside this gateway."),
    table("Back ends", ["Back end", "State", "Since (UTC)", "Kind", "What it is for", "Last error since the start"], rows, "No back ends."),
  ];
}

function gateways(status) {
  if (status.gateways_error) return [h("h2", null, "Gateways"), h("p", { class: "note" }, "The other gateways are registered in the database, which does not answer: " + status.gateways_error)];
  const rows = status.gateways.map((g) => [[g.node, g.node === status.node && " (this one)"], state(g.away ? "away" : "ok"), g.url, g.version, stamp(g.started_at), stamp(g.seen_at)]);
  return rows.length > 1 && [h("h2", null, "Gateways"), table("Gateways", ["Node", "State", "Address", "Version", "Started (UTC)", "Last heartbeat (UTC)"], rows, "")];
}

function journals(status) {
  const rows = status.journals.map((j) => [link("events", { kind: j.kind }, j.kind), j.accepted, j.processed, j.quarantined, j.lag, long(j.waiting || "nothing"), bytes(j.bytes),
    j.gaps ? h("span", { class: "state bad" }, j.gaps) : 0]);
  return [h("h2", null, "Journal"), h("p", { class: "hint" }, "Everything that arrives is written here before it is acknowledged. Accepted, processed and quarantined are counted since the start. Gaps are parts that could not be read at the start."),
    table("Journal", ["Traffic", "Accepted#", "Processed#", "Quarantined#", "Not processed yet#", "Waits for", "On disk#", "Gaps#"], rows, "No journal.")];
}

function queue({ queue: q }) {
  const row = [q.running, q.waiting, q.parked, q.delivered, q.retried, q.dead, q.unsaved];
  return [h("h2", null, "Delivery queue"), h("p", { class: "hint" }, "Of this gateway; delivered, to repeat and given up are counted since its start."),
    table("Delivery queue", ["Under way#", "Wait for a first attempt#", "Wait for a breaker#", "Delivered#", "Attempts to repeat#", "Given up#", "Outcomes not saved#"], [row], "")];
}

function carriers(status) {
  const note = (name) => (status.backends.find((b) => b.name === "carrier " + name) || { note: "" }).note;
  const rows = status.carriers.map((c) => [[c.name, " ", simulates(note(c.name)) && state("simulated")],
    c.bound === null ? "no bind" : [state(c.bound ? "ok" : "down"), c.binds.length > 1 && " " + c.binds.filter((b) => b.bound).length + " of " + c.binds.length],
    c.messages, c.receipts, c.waiting, c.accepted, c.rejected, c.unknown]);
  const binds = status.carriers.flatMap((c) => c.binds.map((b) => [c.name, b.name, b.addr, [state(b.bound ? "ok" : "down"), b.error && " " + b.error], h("span", { class: "since" }, stamp(b.since), h("span", { class: "hint" }, ago(b.since))),
    b.messages, b.receipts]));
  return [h("h2", null, "Carriers"), table("Carriers", ["Carrier", "Binds", "Messages in#", "Receipts in#", "Parts that wait#", "Parts taken#", "Rejected#", "Answer lost#"], rows,
    "No carrier is configured. Carriers that post over HTTP are seen under Events."),
  binds.length > 0 && table("Binds", ["Carrier", "Bind", "Address", "State", "Since (UTC)", "Messages in#", "Receipts in#"], binds, "")];
}

function stored({ stored_bytes: sizes }) {
  const kinds = Object.entries(sizes).sort((a, b) => b[1] - a[1]);
  const total = kinds.reduce((sum, [, n]) => sum + n, 0);
  return [h("h2", null, "Records on disk"), h("p", { class: "hint" }, (kinds.length ? bytes(total) + " with indexes, measured each hour. " : "") + "The journal is not counted here."),
    h("details", null, h("summary", null, "By kind"), table("Records on disk", ["Kind", "Size#"], kinds.map(([kind, n]) => [kind, bytes(n)]), "Not measured yet: the first time is ten seconds after the start."))];
}

function breakers(list, said, again) {
  const close = (b) => button("Close", async (e) => {
    const sure = await ask("Close this breaker?", [plural(b.waiting, "delivery waits", "deliveries wait") + " for " + b.target + ".", "They are attempted within seconds."], "Close it");
    if (sure) during(e.target, said, async () => { await call("closeBreaker", { path: { endpoint: b.endpoint } }); again(); return "The breaker of " + b.target + " is closed."; });
  });
  const rows = list.map((b) => [long(b.target), account(b.account), b.relay, long(b.reason), stamp(b.opened_at), stamp(b.probe_at),
    link("deliveries", { waits_for: "breaker", relay: b.relay }, String(b.waiting)), may("closeBreaker") && close(b)]);
  return table("Open breakers", ["Endpoint", "Account", "Relay", "Reason", "Since (UTC)", "Next probe (UTC)", "Waiting#", "Action"], rows,
    "None. An endpoint that fails ten times in a row would be here, with what waits for it.");
}

// needs are the lists in which something waits for a person, or for its time.
const needs = [
  ["Dead deliveries", "deliveries", "listDeliveries", { state: "dead" }, true], ["To be tried again", "deliveries", "listDeliveries", { state: "retrying" }],
  ["Queued", "deliveries", "listDeliveries", { state: "queued" }], ["Quarantined events", "events", "listEvents", { state: "quarantined" }, true],
  ["Unrouted events", "events", "listEvents", { state: "unrouted" }, true], ["Raised alarms", "alarms", "listAlarmsOfAccount", { state: "raised" }, true],
];

const count = (signal) => Promise.all(needs.map(([, , op, query]) => call(op, { query: { ...query, limit: countUpTo }, signal })));

const tiles = (counted) => h("div", { class: "tiles" }, needs.map(([text, view, , query, serious], i) => {
  const n = counted[i].data.length;
  return h("a", { class: "tile" + (serious && n ? " bad" : ""), href: address(view, query) }, h("b", null, counted[i].meta.next ? n + "+" : n), text);
}));

// charts are what came in, what went out, and what waits; a series that was zero
// all the time is left out.
const charts = [
  ["Came in, per minute", [["uplink", "Frames"], ["sms", "SMS"], ["receipt", "Receipts"], ["cdr", "Call records"], ["quarantined", "Quarantined"]]],
  ["Went out, per minute", [["delivered", "Deliveries"], ["parts_accepted", "SMS parts"], ["retried", "Attempts to repeat"], ["dead", "Given up"], ["parts_rejected", "SMS parts rejected"]]],
  ["Waits in the journal, at most", [["lag", "Not processed yet"]]],
];

function drawTraffic(range, found, drawn) {
  drawn.forEach((c) => c.end());
  drawn.length = 0;
  const from = Date.parse(found.from) / 1000, values = new Map(found.series.map((s) => [s.name, s.values]));
  const times = (found.series[0] || { values: [] }).values.map((_, i) => from + i * found.step);
  const figures = charts.map(([title, series], n) => {
    const scale = n === 2 ? 1 : found.step / 60;
    const shown = series.map(([name, label]) => ({ label, band: true, values: (values.get(name) || []).map((v) => v === null ? null : v / scale) }))
      .filter((s, i) => i === 0 || s.values.some((v) => v > 0));
    const one = chart(title + ", over the last " + range, times, shown, { height: 180, counts: true, from, to: from + times.length * found.step });
    drawn.push(one);
    return h("div", { class: "sheet" }, h("h3", null, title), one);
  });
  const pick = (word) => button("Last " + word, () => go("now", word === "hour" ? {} : { range: word }), { "aria-pressed": String(word === range) });
  return [h("p", { class: "bar" }, pick("hour"), pick("day"), h("span", { class: "hint" }, "Counted by this gateway (" + found.node + "), in UTC" + (found.step > 60 ? ", as the mean of five minutes" : "") + ". Gaps are times when it did not run.")),
    h("div", { class: "charts" }, figures)];
}

export function show(main, params, signal) {
  const range = params.range === "day" ? "day" : "hour", said = told(), drawn = [];
  signal.addEventListener("abort", () => drawn.forEach((c) => c.end()));
  const part = (title, every, load) => section(title, load, { signal, every });
  const status = (draw) => part("", 5000, async () => draw((await call("getStatus", { signal })).data));
  const open = part("Open breakers", 5000, async () => breakers((await call("listBreakers", { signal })).data, said, () => open.again()));
  main.append(h("h1", null, "Overview"), said,
    status((s) => [h("p", { class: "intro" }, "Gateway " + s.node + ", version " + s.version + ", started ", stamp(s.started_at), " UTC. As of " + clock(new Date(s.at)) + " UTC; asked again every 5 seconds while this page is in view."), outage(s)]),
    part("Needs attention", 30_000, async () => tiles(await count(signal))),
    part("Traffic", 15_000, async () => drawTraffic(range, (await call("getTraffic", { query: { range }, signal })).data, drawn)), open,
    status((s) => [backends(s), gateways(s), carriers(s), journals(s), queue(s), stored(s)]));
}
