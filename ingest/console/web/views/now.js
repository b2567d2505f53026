// Overview: health, business figures, failures by cause, and the traffic of this gateway.

import { account, accounts } from "../core/accounts.js";
import { address, go, link } from "../core/address.js";
import { all, call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { button, h, long, state, table, told, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { clock, plural } from "../core/format.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";
import { loadRules } from "./alarmparts.js";
import { causes } from "./causes.js";
import { isSilent } from "./deviceparts.js";
import { loadRelays, senderName } from "./relaynames.js";
import { outage, simulated } from "./system.js";

const lowCredit = 100; // credits

// strip is the health of the gateway in one line.
function strip(s) {
  const down = s.backends.filter((b) => b.status === "down" && !b.optional),
    backlog = s.journals.reduce((n, j) => n + j.lag, 0);
  const unbound = s.carriers.filter((c) => c.bound === false).length,
    away = (s.gateways || []).filter((g) => g.away).length;
  const item = (good, text) => h("span", { class: "state " + (good ? "good" : "bad") }, text);
  return [
    h(
      "a",
      { class: "strip", href: address("system") },
      h("b", null, "Back ends " + (s.ready ? "ready" : "not ready")),
      down.length > 0 && item(false, plural(down.length, "back end") + " down"),
      item(!unbound, plural(s.carriers.length, "carrier") + (unbound ? ", " + unbound + " not connected" : "")),
      item(backlog < 1000, "journal backlog " + backlog),
      s.gateways &&
        s.gateways.length > 1 &&
        item(!away, plural(s.gateways.length, "gateway") + (away ? ", " + away + " away" : "")),
      h("span", { class: "hint" }, "Updated " + clock(new Date(s.at)) + " (every 5 s)")
    ),
    outage(s),
    simulated(s)
  ];
}

// sumOf adds up a series of the traffic.
const sumOf = (traffic, name) =>
  ((traffic.series.find((s) => s.name === name) || {}).values || []).reduce((n, v) => n + (v || 0), 0);

// What a tile counts at most.
const maxRecords = 5000,
  maxAlarms = 500,
  maxFailed = 100; // messages or deliveries

// figures returns the tiles: [text, value, target, whether it needs attention]. They count the records of all
// gateways, in the database; only the sent parts are counted by this gateway.
async function figures(signal) {
  const read = (op, load) =>
    may(op)
      ? load().catch((error) => {
          if (error.name === "AbortError") throw error;
          return null;
        })
      : null;
  const list = (op) => read(op, () => all(op, { signal, limit: maxRecords }));
  const failed = (state) =>
    read("listMessages", async () => {
      const query = { state, direction: "out", limit: maxFailed };
      return (await call("listMessages", { query, signal })).data;
    });
  const [devices, traffic, balances, sims, alarms, rejected, undelivered, retrying] = await Promise.all([
    list("listDevicesOfAccounts"),
    read("getTraffic", async () => (await call("getTraffic", { query: { range: "day" }, signal })).data),
    list("listBalances"),
    list("listSIMsOfAccounts"),
    read("listAlarmsOfAccount", () =>
      all("listAlarmsOfAccount", { query: { state: "raised" }, limit: maxAlarms, signal })
    ),
    failed("rejected"),
    failed("undelivered"),
    read("listDeliveries", async () => {
      const query = { state: "retrying", limit: maxFailed };
      return (await call("listDeliveries", { query, signal })).data;
    })
  ]);
  const tileOf = (text, records, limit, matches, target, attention) => {
    if (!records) return null;
    const n = records.filter(matches).length;
    return [text, n + (records.length < limit ? "" : "+"), target, attention && n > 0];
  };
  const every = () => true,
    isRecent = (m) => Date.parse(m.received_at) > Date.now() - 86400e3;
  const failures = (text, messages, word) =>
    tileOf(
      text,
      messages,
      maxFailed,
      every,
      ["messages", { direction: "out", state: word }],
      messages && messages.some(isRecent)
    );
  return [
    tileOf("Devices", devices, maxRecords, every, ["devices", {}]),
    tileOf("Devices silent", devices, maxRecords, isSilent, ["devices", { heard: "silent" }], true),
    tileOf("Raised alarms", alarms, maxAlarms, every, ["alarms", { state: "raised" }], true),
    traffic && [
      "SMS parts sent by this gateway, 24\u00a0h",
      sumOf(traffic, "parts_accepted"),
      ["now", { range: "day" }]
    ],
    failures("SMS rejected", rejected, "rejected"),
    failures("SMS undelivered", undelivered, "undelivered"),
    tileOf("Deliveries retrying", retrying, maxFailed, every, ["deliveries", { state: "retrying" }]),
    tileOf(
      "Accounts under " + lowCredit + " credits",
      balances,
      maxRecords,
      (b) => b.balance < lowCredit,
      ["accounts", { sort: "Credit" }],
      true
    ),
    sims &&
      sims.length > 0 &&
      tileOf(
        "SIMs at their limit",
        sims,
        maxRecords,
        (s) => s.limit.monthly && s.month_bytes >= s.limit.monthly,
        ["sims", { sort: "-Usage" }],
        true
      )
  ].filter(Boolean);
}

const tile = ([text, value, target, bad]) =>
  h("a", { class: "tile" + (bad ? " bad" : ""), href: address(...target) }, h("b", null, value), text);

// senderOf names the rule or else the relay of a breaker.
function senderOf(b) {
  const rule = senderName({ kind: "rule", account: b.account, relay: b.relay });
  return rule === b.relay ? senderName(b) : rule;
}

function breakers(list, note, again) {
  if (!list.length) return h("p", { class: "hint" }, "No paused endpoints.");
  const retry = (b) =>
    button("Retry now", async (e) => {
      const sure = await ask(
        "Retry " + b.target + "?",
        plural(b.waiting, "delivery waits", "deliveries wait") +
          " for this endpoint. They are attempted within seconds.",
        "Retry now"
      );
      if (sure)
        during(e.target, note, async () => {
          await call("closeBreaker", { path: { endpoint: b.endpoint } });
          again();
          return "Deliveries to " + b.target + " are retried.";
        });
    });
  const rows = list.map((b) => [
    long(b.target),
    account(b.account),
    senderOf(b),
    long(b.reason),
    when(b.opened_at),
    Date.parse(b.probe_at) > Date.now() ? when(b.probe_at) : "with the next delivery",
    link("deliveries", { waits_for: "breaker", relay: b.relay }, String(b.waiting)),
    may("closeBreaker") && retry(b)
  ]);
  return table(
    "Paused endpoints",
    ["Endpoint", "Account", "Relay or rule", "Reason", "Since", "Next attempt", "Waiting#", "Change"],
    rows,
    ""
  );
}

// charts has the titles and series of the charts, each with the number of its line's colour; 5 is red and 2 close to
// it. A series that is always zero is omitted.
const charts = [
  [
    "Received, per minute",
    [
      ["uplink", "Frames", 1],
      ["sms", "SMS", 6],
      ["receipt", "Delivery receipts", 3],
      ["cdr", "Call and usage records", 4],
      ["quarantined", "Quarantined or unrouted", 5]
    ]
  ],
  [
    "Delivery attempts and SMS parts, per minute",
    [
      ["delivered", "Delivered or simulated", 1],
      ["parts_accepted", "SMS parts", 3],
      ["retried", "Failed attempts", 6],
      ["dead", "Failed deliveries", 5],
      ["parts_rejected", "SMS parts rejected", 4]
    ]
  ],
  ["Journal backlog (maximum)", [["lag", "Backlog", 1]]]
];

function drawTraffic(range, found, drawn) {
  drawn.forEach((c) => c.end());
  drawn.length = 0;
  const from = Date.parse(found.from) / 1000,
    values = new Map(found.series.map((s) => [s.name, s.values]));
  const times = (found.series[0] || { values: [] }).values.map((_, i) => from + i * found.step);
  const sheets = charts.map(([title, series], n) => {
    const scale = n === 2 ? 1 : found.step / 60;
    const lines = series
      .map(([name, label, line]) => ({
        label,
        line,
        band: true,
        values: (values.get(name) || []).map((v) => (v === null ? null : v / scale))
      }))
      .filter((s, i) => i === 0 || s.values.some((v) => v > 0));
    const made = chart(title + ", over the last " + range, times, lines, {
      height: 180,
      counts: true,
      from,
      to: from + times.length * found.step
    });
    drawn.push(made);
    return h("div", { class: "sheet" }, h("h3", null, title), made);
  });
  const pick = (word) =>
    button(word === "day" ? "24\u00a0h" : "1\u00a0h", () => go("now", word === "hour" ? {} : { range: word }), {
      "aria-pressed": String(word === range)
    });
  return [
    h(
      "p",
      { class: "bar" },
      pick("hour"),
      pick("day"),
      h(
        "span",
        { class: "hint" },
        "Counted by gateway " +
          found.node +
          "; times in UTC" +
          (found.step > 60 ? ", means of five minutes" : "") +
          ". In a gap the gateway was not running."
      )
    ),
    h("div", { class: "charts" }, sheets)
  ];
}

export function show(main, params, signal) {
  if (may("addAccount"))
    accounts().then(
      (known) => known.length || signal.aborted || go("start"),
      () => {}
    );
  const range = params.range === "day" ? "day" : "hour",
    note = told(),
    drawn = [];
  signal.addEventListener("abort", () => drawn.forEach((c) => c.end()));
  const part = (title, every, load) => section(title, load, { signal, every });
  const paused = part("Paused endpoints", 5000, async () => {
    await Promise.allSettled([loadRules(signal), loadRelays(signal)]);
    return breakers((await call("listBreakers", { signal })).data, note, () => paused.again());
  });
  main.append(
    h("h1", null, "Overview"),
    note,
    part("", 5000, async () => strip((await call("getStatus", { signal })).data)),
    part("", 30_000, async () => h("div", { class: "tiles" }, (await figures(signal)).map(tile))),
    h("h2", null, "Failures"),
    causes(["dead", "quarantined", "unrouted", "rejected", "undelivered", "unknown", "failed"], signal, {
      none: "No failures."
    }),
    paused,
    part("Traffic", 15_000, async () =>
      drawTraffic(range, (await call("getTraffic", { query: { range }, signal })).data, drawn)
    )
  );
}
