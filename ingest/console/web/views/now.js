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
import { loadRules, ruleName } from "./alarmparts.js";
import { causes } from "./causes.js";
import { isSilent } from "./deviceparts.js";
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
      item(
        !down.length,
        plural(s.backends.length - down.length, "back end") +
          " ok" +
          (down.length ? ", " + down.length + " down" : "")
      ),
      item(!unbound, plural(s.carriers.length, "carrier") + (unbound ? ", " + unbound + " not bound" : "")),
      item(backlog < 1000, "backlog " + backlog),
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

// figures returns the tiles: [text, value, target, whether it needs attention].
async function figures(signal) {
  const read = (op, load) =>
    may(op)
      ? load().catch((error) => {
          if (error.name === "AbortError") throw error;
          return null;
        })
      : null;
  const [devices, traffic, balances, sims, alarms] = await Promise.all([
    read("listDevicesOfAccounts", () => all("listDevicesOfAccounts", { signal, limit: 5000 })),
    read("getTraffic", async () => (await call("getTraffic", { query: { range: "day" }, signal })).data),
    read("listBalances", () => all("listBalances", { signal })),
    read("listSIMsOfAccounts", () => all("listSIMsOfAccounts", { signal, limit: 5000 })),
    read("listAlarmsOfAccount", () => call("listAlarmsOfAccount", { query: { state: "raised", limit: 500 }, signal }))
  ]);
  const silent = devices ? devices.filter(isSilent).length : 0,
    low = balances ? balances.filter((b) => b.balance < lowCredit).length : 0;
  const limited = sims ? sims.filter((s) => s.limit.monthly && s.month_bytes >= s.limit.monthly).length : 0,
    rejected = traffic ? sumOf(traffic, "parts_rejected") : 0;
  return [
    devices && ["Devices online", devices.length - silent, ["devices", { order: "account" }], false],
    devices && ["Devices silent", silent, ["devices", {}], silent > 0],
    alarms && [
      "Raised alarms",
      alarms.data.length + (alarms.meta.next ? "+" : ""),
      ["alarms", { state: "raised" }],
      alarms.data.length > 0
    ],
    traffic && ["SMS sent in 24\u00a0h", sumOf(traffic, "parts_accepted"), ["messages", { direction: "out" }], false],
    traffic && [
      "SMS failed in 24\u00a0h",
      rejected,
      ["messages", { state: "rejected", direction: "out" }],
      rejected > 0
    ],
    balances &&
      balances.length > 0 && [
        "Accounts under " + lowCredit + " credits",
        low,
        ["accounts", { sort: "Credit" }],
        low > 0
      ],
    sims && sims.length > 0 && ["SIMs at their limit", limited, ["sims", { sort: "-Used this month" }], limited > 0]
  ].filter(Boolean);
}

const tile = ([text, value, target, bad]) =>
  h("a", { class: "tile" + (bad ? " bad" : ""), href: address(...target) }, h("b", null, value), text);

function breakers(list, note, again) {
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
    ruleName({ account: b.account, rule_id: b.relay }), // the id if it is a relay
    long(b.reason),
    when(b.opened_at),
    Date.parse(b.probe_at) > Date.now() ? when(b.probe_at) : "with the next delivery",
    link("deliveries", { waits_for: "breaker", relay: b.relay }, String(b.waiting)),
    may("closeBreaker") && retry(b)
  ]);
  return table(
    "Paused endpoints",
    ["Endpoint", "Account", "Relay or rule", "Reason", "Since", "Next attempt", "Waiting#", "Action"],
    rows,
    "No paused endpoints."
  );
}

// charts has the titles and series of the charts. A series that is always zero is omitted.
const charts = [
  [
    "Received, per minute",
    [
      ["uplink", "Frames"],
      ["sms", "SMS"],
      ["receipt", "Receipts"],
      ["cdr", "Call records"],
      ["quarantined", "Quarantined"]
    ]
  ],
  [
    "Sent, per minute",
    [
      ["delivered", "Deliveries"],
      ["parts_accepted", "SMS parts"],
      ["retried", "Retries"],
      ["dead", "Failed"],
      ["parts_rejected", "SMS parts rejected"]
    ]
  ],
  ["Journal backlog (maximum)", [["lag", "Backlog"]]]
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
      .map(([name, label]) => ({
        label,
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
    button("Last " + word, () => go("now", word === "hour" ? {} : { range: word }), {
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
        "Counted by this gateway (" +
          found.node +
          "), in UTC" +
          (found.step > 60 ? ", means of five minutes" : "") +
          ". Gaps: it did not run."
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
    await loadRules(signal).catch(() => {});
    return breakers((await call("listBreakers", { signal })).data, note, () => paused.again());
  });
  main.append(
    h("h1", null, "Overview"),
    note,
    part("", 5000, async () => strip((await call("getStatus", { signal })).data)),
    part("", 30_000, async () => h("div", { class: "tiles" }, (await figures(signal)).map(tile))),
    h("h2", null, "Failures"),
    causes(["dead", "quarantined", "unrouted", "failed"], signal, { none: "No failures." }),
    paused,
    part("Traffic", 15_000, async () =>
      drawTraffic(range, (await call("getTraffic", { query: { range }, signal })).data, drawn)
    )
  );
}
