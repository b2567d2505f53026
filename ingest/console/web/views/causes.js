// Failures grouped by their cause, each with what repairs the whole group.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, long, table, told, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { jobWords } from "../core/filters.js";
import { plural } from "../core/format.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";
import { loadRules, senderName } from "./alarmparts.js";

const scanned = 500; // records that are grouped

// causeOf is a reason without the numbers, ids and quoted texts, which differ between records.
const causeOf = (reason) => (reason || "no reason").replace(/"[^"]*"|[0-9a-f]{8,}|\d+(\.\d+)?/gi, "…").slice(0, 160);

// kinds has, for each kind of failure, the query for its records, the key and name of a group, the
// view that lists a group, the operation that tries it again, and for some a link to the remedy with its operation.
const kinds = {
  dead: {
    op: "listDeliveries",
    query: { state: "dead" },
    noun: ["failed delivery", "failed deliveries"],
    at: (d) => d.created_at,
    group: (d) => [d.account, d.kind, d.relay, causeOf(d.reason)].join("|"),
    reason: (d) => d.reason,
    about: (d) => [d.kind === "rule" ? "rule " : d.kind === "relay" ? "relay " : d.kind + " ", senderName(d)],
    view: (d) => ["deliveries", { state: "dead", account: String(d.account), relay: d.relay, kind: d.kind }],
    retry: "replayDeliveries",
    body: (records) => ({ ids: records.map((d) => d.id) })
  },
  quarantined: {
    op: "listEvents",
    query: { state: "quarantined" },
    noun: ["event not decoded", "events not decoded"],
    at: (e) => e.received_at,
    group: (e) => [e.account, e.kind, causeOf(e.reason)].join("|"),
    reason: (e) => e.reason,
    about: (e) => e.source,
    view: (e) => ["events", { state: "quarantined", kind: e.kind, account: e.account ? String(e.account) : "" }],
    retry: "replayEvents",
    body: (records) => ({ ids: records.map((e) => e.id) })
  },
  unrouted: {
    op: "listEvents",
    query: { state: "unrouted" },
    noun: ["message without a relay", "messages without a relay"],
    at: (e) => e.received_at,
    group: (e) => [e.account, causeOf(e.reason)].join("|"),
    reason: (e) => e.reason,
    about: (e) => e.source,
    view: (e) => ["events", { state: "unrouted", account: e.account ? String(e.account) : "" }],
    remedy: ["createNumberRelay", () => link("relays", {}, "Add a relay")],
    retry: "replayEvents",
    body: (records) => ({ ids: records.map((e) => e.id) })
  },
  failed: {
    op: "listJobsOfAccounts",
    query: { state: "failed" },
    noun: ["failed job", "failed jobs"],
    at: (j) => j.updated_at,
    group: (j) => [j.account, j.kind, causeOf(j.error)].join("|"),
    reason: (j) => j.error,
    about: (j) => jobWords[j.kind] || j.kind,
    view: (j) => ["jobs", { state: "failed", kind: j.kind, account: String(j.account) }]
  }
};

// groupsOf groups the newest failures of a kind, the largest group first.
async function groupsOf(name, signal) {
  const kind = kinds[name];
  if (!may(kind.op)) return [];
  if (name === "dead") await loadRules(signal).catch(() => {});
  const found = await call(kind.op, { query: { ...kind.query, limit: scanned }, signal }),
    groups = new Map();
  for (const record of found.data) {
    const key = name + "|" + kind.group(record);
    if (!groups.has(key)) groups.set(key, { key, kind, records: [] });
    groups.get(key).records.push(record);
  }
  return [...groups.values()].map((g) => ({ ...g, more: Boolean(found.meta.next) }));
}

// causes makes a part of a view with the failures of some kinds, at first limit groups. Without
// failures it shows the text none.
export function causes(names, signal, { none = "", limit = 12 } = {}) {
  const note = told();
  const retry = (g) => (e) =>
    during(e.target, note, async () => {
      const n = g.records.length,
        text = plural(n, g.kind.noun[0], g.kind.noun[1]);
      if (
        !(await ask(
          "Retry " + text + "?",
          ["Each is tried again now.", g.kind.reason(g.records[0])].filter(Boolean),
          "Retry " + n
        ))
      )
        return "";
      const { count } = await call(g.kind.retry, { body: g.kind.body(g.records) });
      setTimeout(() => signal.aborted || place.again(), 1500);
      return plural(count, g.kind.noun[0], g.kind.noun[1]) + " tried again.";
    });
  const row = (g) => {
    const [first] = g.records,
      n = g.records.length;
    return [
      link(...g.kind.view(first), n + (g.more ? "+" : "") + " × " + g.kind.noun[0]),
      account(first.account),
      g.kind.about(first),
      long(g.kind.reason(first)),
      when(g.kind.at(first)),
      [
        g.kind.remedy && may(g.kind.remedy[0]) && [g.kind.remedy[1](), " "],
        g.kind.retry &&
          may(g.kind.retry) &&
          button(n === 1 ? "Retry" : "Retry " + n, retry(g), {
            "aria-label": "Retry " + n + " × " + g.kind.noun[0] + " " + g.kind.reason(first)
          })
      ]
    ];
  };
  const place = section(
    "",
    async () => {
      const groups = (await Promise.all(names.map((name) => groupsOf(name, signal))))
        .flat()
        .sort((a, b) => b.records.length - a.records.length);
      if (!groups.length) return none && h("p", { class: "empty" }, none);
      const heads = ["Failures", "Account", "Source", "Cause", "Newest", "Action"];
      const unfold = () => {
        limit = groups.length;
        place.again();
      };
      return [
        table("Failures by cause", heads, groups.slice(0, limit).map(row), "", { compact: true }),
        groups.length > limit &&
          h("p", { class: "bar" }, button("Show all " + groups.length + " causes", unfold, { class: "quiet" }))
      ];
    },
    { signal, every: 15_000 }
  );
  place.prepend(note);
  return place;
}
