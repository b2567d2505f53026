// Failures grouped by their cause, each with what repairs the whole group.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, long, table, told, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { deliveryKinds, jobWords } from "../core/filters.js";
import { capital, plural } from "../core/format.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";
import { loadRules } from "./alarmparts.js";
import { loadRelays, senderName } from "./relaynames.js";

const scanned = 500, // records that are grouped
  scannedMessages = 100;

// causeOf is a reason without the numbers, ids and quoted texts, which differ between records.
const causeOf = (reason) => (reason || "no reason").replace(/"[^"]*"|[0-9a-f]{8,}|\d+(\.\d+)?/gi, "…").slice(0, 160);

// reasonOf is the reason why a part of a sent message has a state.
const reasonOf = (m, word) => (m.parts.find((p) => p.state === word) || {}).reason || "";

// sent is the kind of failure of sent messages with a part in a state. They are listed for a day, unless they need a
// decision.
const sent = (word, more) => ({
  op: "listMessages",
  query: { direction: "out", state: word, limit: scannedMessages },
  noun: Array(2).fill("SMS " + word + " in the last day"),
  at: (m) => m.received_at,
  counts: (m) => more || Date.parse(m.received_at) > Date.now() - 86400e3,
  group: (m) => [m.account, causeOf(reasonOf(m, word))].join("|"),
  reason: (m) => reasonOf(m, word),
  about: (m) => m.parts.find((p) => p.state === word)?.carrier,
  view: (m) => ["messages", { direction: "out", state: word, account: String(m.account) }],
  ...more
});

// relayFor is the button that adds a relay for events without one; with their number if all have the same.
function relayFor(events) {
  const numbers = new Set(events.map((e) => (/no relay for (\d+)/.exec(e.reason) || [])[1] || ""));
  const presets = { account: events[0].account ? String(events[0].account) : "" };
  if (numbers.size === 1) [presets.number] = numbers;
  return button("Add relay", async () => (await import("./relay.js")).addRelay(presets)); // which imports this module
}

// kinds has, for each kind of failure, the query for its records, the key and name of a group, the
// view that lists a group, the operation that tries it again with its word, and for some the remedy with its operation.
const kinds = {
  dead: {
    op: "listDeliveries",
    query: { state: "dead" },
    noun: ["failed delivery", "failed deliveries"],
    at: (d) => d.created_at,
    group: (d) => [d.account, d.kind, d.relay, causeOf(d.reason)].join("|"),
    reason: (d) => d.reason,
    about: (d) =>
      d.kind === "rule" || d.kind === "relay" ? capital(d.kind) + " " + senderName(d) : deliveryKinds[d.kind],
    view: (d) => ["deliveries", { state: "dead", account: String(d.account), relay: d.relay, kind: d.kind }],
    retry: "replayDeliveries",
    word: "Retry",
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
    word: "Replay",
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
    remedy: ["createNumberRelay", relayFor],
    retry: "replayEvents",
    word: "Replay",
    body: (records) => ({ ids: records.map((e) => e.id) })
  },
  rejected: sent("rejected"),
  undelivered: sent("undelivered"),
  unknown: sent("unknown", {
    noun: ["SMS with an unknown result", "SMS with unknown results"],
    retry: "resendMessages",
    word: "Retry",
    body: (records) => ({ account: records[0].account, ids: records.map((m) => String(m.id)) }),
    warning: "The carrier's answer was lost, so the phone may receive them twice. Nothing is charged.",
    counted: ["part", "parts"]
  }),
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
  if (name === "dead") await Promise.allSettled([loadRules(signal), loadRelays(signal)]);
  const found = await call(kind.op, { query: { limit: scanned, ...kind.query }, signal }),
    groups = new Map(),
    counts = kind.counts || (() => true);
  for (const record of found.data.filter(counts)) {
    const key = name + "|" + kind.group(record);
    if (!groups.has(key)) groups.set(key, { key, kind, records: [] });
    groups.get(key).records.push(record);
  }
  return [...groups.values()].map((g) => ({ ...g, more: Boolean(found.meta.next) && counts(found.data.at(-1)) }));
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
          g.kind.word + " " + text + "?",
          [g.kind.warning || "Each is tried again now.", g.kind.reason(g.records[0])].filter(Boolean),
          g.kind.word + " " + n
        ))
      )
        return "";
      const { count } = await call(g.kind.retry, { body: g.kind.body(g.records) });
      setTimeout(() => signal.aborted || place.again(), 1500);
      return plural(count, ...(g.kind.counted || g.kind.noun)) + " tried again.";
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
        g.kind.remedy && may(g.kind.remedy[0]) && [g.kind.remedy[1](g.records), " "],
        g.kind.retry &&
          may(g.kind.retry) &&
          button(n === 1 ? g.kind.word : g.kind.word + " " + n, retry(g), {
            "aria-label": g.kind.word + " " + n + " × " + g.kind.noun[0] + " " + g.kind.reason(first)
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
      const heads = ["What", "Account", "Source", "Cause", "Newest", "Change"];
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
