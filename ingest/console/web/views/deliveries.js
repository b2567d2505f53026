// Deliveries: requests and emails that go out, with every attempt, and their retries.

import { account, accountName } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, due, h, long, pairs, parted, pre, stamp, state, table, when } from "../core/dom.js";
import { deliveryKinds, jobWords } from "../core/filters.js";
import { ask, during } from "../core/form.js";
import { cut, eventOf, plural, stateWord, took } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { may } from "../core/session.js";
import { loadRules } from "./alarmparts.js";
import { causes } from "./causes.js";
import { records } from "./pickers.js";
import { loadRelays, relayOf, senderName } from "./relaynames.js";

const countedPages = 20; // pages of 1000 that a confirmation counts

const arrived = (d) => d.state === "delivered" || d.state === "simulated";

// countDeliveries counts what a filter selects, page by page.
async function countDeliveries(filter, signal) {
  let n = 0,
    cursor = "";
  for (let page = 0; page < countedPages; page++) {
    const found = await call("listDeliveries", { query: { ...filter, cursor, limit: 1000 }, signal });
    n += found.data.length;
    cursor = found.meta.next;
    if (!cursor) return String(n);
  }
  return "more than " + n;
}

async function replayDeliveries(clicked, ctx, chosen, filter) {
  await during(clicked, ctx.said, async () => {
    const repeated = (chosen || []).filter(arrived).length;
    const n = chosen ? String(chosen.length) : await countDeliveries(filter, ctx.signal);
    if (n === "0") return h("p", { class: "hint" }, "No failed delivery matches.");
    const text = [
      chosen ? "Each is sent to its target again." : "Every failed delivery that matches the filters is sent again."
    ];
    if (repeated)
      text.push(
        plural(repeated, "of them has", "of them have") + " arrived already: the receiver gets it a second time."
      );
    if (!(await ask("Retry " + n + (n === "1" ? " delivery?" : " deliveries?"), text, "Retry " + n)))
      return "";
    const body = chosen ? { ids: chosen.map((d) => d.id), include_delivered: repeated > 0 } : filter;
    const { count } = await call("replayDeliveries", { body });
    ctx.again();
    return plural(count, "delivery is", "deliveries are") + " queued again.";
  });
}

function attempts(d) {
  const rows = d.attempts.map((a, i) => [
    i + 1,
    stamp(a.at),
    took(Math.max(1, a.duration_ms)),
    a.status || "No answer",
    long(a.error),
    a.response && pre(a.response)
  ]);
  return [
    h("h3", null, "Attempts"),
    table(
      "Attempts of " + d.id,
      ["Attempt#", "Time (UTC)", "Took#", "Status", "Error", "Answer"],
      rows,
      "No attempt yet."
    )
  ];
}

const reasonsToWait = { breaker: "waits: its endpoint is paused", turn: "waits for its turn" };

// nextAttempt says when a delivery is attempted again, or what it waits for; "" for an ended one.
export const nextAttempt = (d) =>
  d.waits_for ? reasonsToWait[d.waits_for] : (d.next_attempt_at && ["next attempt ", due(d.next_attempt_at)]) || "";

const jobs = records("listJobsOfAccounts");

// eventTypes are the callbacks of jobs, by the beginning of the delivery's id.
const eventTypes = {
  job: (job) => {
    const result = job && ["completed", "failed"].includes(job.state) ? job.state : "ended"; // job is up to 30 s old
    return "Job " + result + (job ? ": " + (jobWords[job.kind] || job.kind) : "");
  },
  sim: (job) => "SIM state changed" + (job && job.iccid ? ": " + job.iccid : ""),
  claim: () => "Tokens claimed"
};
const eventTypeOf = (d) => d.kind === "callback" && eventTypes[d.id.split("-")[0]];

// recordOf describes the record of a callback or a notice: its noun, a text, and the address of its page.
function recordOf(d) {
  const account = String(d.account),
    id = d.message_id;
  if (eventTypeOf(d)) {
    const text = eventTypeOf(d)(jobs.get(d.account, id));
    return { noun: "Job", text, page: ["jobs", { account, open: id }] };
  }
  if (d.id.startsWith("head-"))
    return { noun: "Ledger", text: "New ledger head: " + id, page: ["ledgers", { ledger: id, account }] };
  if (d.id.endsWith("-ready")) return { noun: "Export", text: "Call records ready" };
  const limit = d.id.startsWith("usage.limit") ? "Usage limit: " : "";
  if (/^89\d{16,18}$/.test(id)) return { noun: "SIM", text: limit + "SIM " + id, page: ["sims", { id, account }] };
  if (limit) return { noun: "Pool", text: limit + "pool " + id };
  return { noun: d.kind === "receipt" ? "Message" : "Record", text: (d.kind === "receipt" ? "Message " : "") + id };
}

// subjectOf names what a delivery is about: the alarm or the frame of a rule, a message, or another record.
function subjectOf(d) {
  const id = code(d.message_id);
  if (d.kind === "relay") return ["Message", id];
  if (d.kind !== "rule") return [recordOf(d).noun, recordOf(d).page ? link(...recordOf(d).page, id) : id];
  if (d.message_id.includes("-"))
    return ["Frame", link("trace", { id: eventOf(d.message_id) }, "Timeline of the frame")];
  const page = { account: String(d.account), rule_id: d.relay, open: d.message_id };
  return ["Alarm", link("alarms", page, "Alarm of " + senderName(d))];
}

// reasonOf is the reason of a delivery's state. A simulated one looks like a sent one otherwise.
function reasonOf(d) {
  if (d.reason || d.state !== "simulated") return d.reason;
  const simulated = d.target.startsWith("sms:") ? "SMS are" : d.target.includes("@") ? "email is" : "its target is";
  return "Not sent: " + simulated + " simulated.";
}

// about says what a delivery is about: its rule or relay, or else the record.
function about(d) {
  if (d.kind !== "rule" && d.kind !== "relay") return recordOf(d).text;
  return (d.kind === "relay" ? "Relay " : "") + senderName(d) + (d.destination ? ", to " + d.destination : "");
}

// aboutCell shows what a delivery is about, with a link to the page of its record.
function aboutCell(d) {
  const { page } = d.kind === "rule" || d.kind === "relay" ? {} : recordOf(d);
  return long(page ? link(...page, about(d)) : about(d));
}

export function deliveryDetail(d, ctx) {
  const mayReplay = ctx && may("replayDeliveries");
  return [
    pairs([
      ["Delivery", code(d.id)],
      ["Kind", deliveryKinds[d.kind]],
      ["Account", account(d.account)],
      d.kind === "rule"
        ? ["Rule", link("rules", { id: d.relay, account: String(d.account) }, senderName(d))]
        : ["Relay", d.relay && [relayOf(d), h("span", { class: "hint" }, " ID ", code(d.relay))]],
      subjectOf(d),
      ["From", d.originator],
      ["To", d.destination],
      ["Target", code(d.target)],
      ["State", [state(d.state), " ", nextAttempt(d)]],
      ["Reason", reasonOf(d)],
      ["Created", [stamp(d.created_at), " UTC"]]
    ]),
    attempts(d),
    h(
      "p",
      { class: "bar" },
      mayReplay &&
        (d.state === "dead" || arrived(d)) &&
        button("Retry this delivery", (x) => replayDeliveries(x.target, ctx, [d])),
      ctx && d.kind === "relay" && link("trace", { id: d.message_id }, "Timeline of the message")
    )
  ];
}

export const show = listing({
  view: "deliveries",
  op: "listDeliveries",
  searches: true,
  title: "Deliveries",
  intro: "HTTP requests and emails that this gateway sends. Failed ones stay until you retry them.",
  sorted: "-Created",
  empty: "No deliveries match the filters.",
  act: "replayDeliveries",
  selectable: (d) => d.state === "dead" || arrived(d),
  selects: "that have ended",
  head: (filter, signal) => (Object.keys(filter).length ? "" : causes(["dead"], signal, { limit: 3 })),
  load: async (query, signal) => {
    const found = await call("listDeliveries", { query, signal });
    const withJobs = found.data.some(eventTypeOf);
    await Promise.allSettled([loadRules(signal), loadRelays(signal), withJobs && jobs.load(signal)]);
    return found;
  },
  name: (d) => deliveryKinds[d.kind],
  detail: deliveryDetail,
  columns: [
    { head: "Delivery", cell: () => "", value: (d) => d.kind },
    { head: "Subject", cell: aboutCell, value: about, roomy: true },
    { head: "Created", cell: (d) => when(d.created_at), value: (d) => d.created_at, first: true },
    { head: "Account", cell: (d) => account(d.account), value: (d) => accountName(d.account), rest: true },
    { head: "Target", cell: (d) => parted(cut(d.target, 80)), value: (d) => d.target, rest: true, roomy: true },
    {
      head: "State",
      cell: (d) => [state(d.state), nextAttempt(d) && h("div", { class: "hint" }, nextAttempt(d))],
      value: (d) => stateWord(d.state)
    },
    { head: "Reason", cell: (d) => long(reasonOf(d), 160), value: reasonOf },
    { head: "Attempts", cell: (d) => d.attempts.length, value: (d) => d.attempts.length, number: true, rest: true }
  ],
  actions: (ctx) =>
    [
      onSelected(ctx, "replayDeliveries", "Retry selected", (b) =>
        replayDeliveries(b, ctx, [...ctx.chosen.values()])
      ),
      (!ctx.filter.state || ctx.filter.state === "dead") &&
        onAll(ctx, "replayDeliveries", "Retry all failed that match", (b) =>
          replayDeliveries(b, ctx, null, { ...ctx.filter, state: "dead" })
        )
    ].filter(Boolean)
});
