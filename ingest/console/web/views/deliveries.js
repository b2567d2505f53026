// Deliveries: requests and mails that go out, with every attempt, and their replay.

import { account, accountName } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, due, h, long, pairs, parted, pre, stamp, state, table, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { cut, eventOf, plural, stateWord, took } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { may } from "../core/session.js";
import { loadRules, senderName } from "./alarmparts.js";
import { causes } from "./causes.js";

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
    if (!(await ask("Send " + n + (n === "1" ? " delivery" : " deliveries") + " again?", text, "Replay " + n)))
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
    took(a.duration_ms),
    a.status || "no answer",
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

// subjectOf names what a delivery is about: the alarm or the frame of a rule, a message, or another record.
function subjectOf(d) {
  const id = code(d.message_id);
  if (d.kind !== "rule") return [{ relay: "Message", receipt: "Message" }[d.kind] || "Record", id];
  if (d.message_id.includes("-")) return ["Frame", link("trace", { id: eventOf(d.message_id) }, id)];
  return ["Alarm", link("alarms", { account: String(d.account), rule_id: d.relay, open: d.message_id }, id)];
}

// reasonOf is the reason of a delivery's state. A simulated one looks like a sent one otherwise.
function reasonOf(d) {
  if (d.reason || d.state !== "simulated") return d.reason;
  const simulated = d.target.startsWith("sms:") ? "SMS are" : d.target.includes("@") ? "mail is" : "its target is";
  return "Not sent: " + simulated + " simulated.";
}

// about says what a delivery is about: its rule or relay, or else the record.
function about(d) {
  if (d.kind === "rule" || d.kind === "relay")
    return senderName(d) + (d.destination ? ", to " + d.destination : "");
  if (/^89\d{16,18}$/.test(d.message_id)) return "SIM " + d.message_id;
  const noun = d.id.startsWith("job-") ? "Job " : d.kind === "receipt" ? "Message " : "";
  return noun + cut(d.message_id, 16);
}

export function deliveryDetail(d, ctx) {
  const mayReplay = ctx && may("replayDeliveries");
  return [
    pairs([
      ["Delivery", code(d.id)],
      ["Kind", kinds[d.kind] || d.kind],
      ["Account", account(d.account)],
      d.kind === "rule"
        ? ["Rule", link("rules", { id: d.relay, account: String(d.account) }, senderName(d))]
        : ["Relay", d.relay],
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
      mayReplay && d.state === "dead" && button("Replay this delivery", (x) => replayDeliveries(x.target, ctx, [d])),
      mayReplay && arrived(d) && button("Send it once more", (x) => replayDeliveries(x.target, ctx, [d])),
      ctx && d.kind === "relay" && link("trace", { id: d.message_id }, "Timeline of its message")
    )
  ];
}

const kinds = {
  relay: "Inbound SMS",
  receipt: "Delivery report",
  callback: "Callback",
  notice: "Notice",
  rule: "Rule"
};

export const show = listing({
  view: "deliveries",
  op: "listDeliveries",
  searches: true,
  title: "Deliveries",
  intro: "HTTP requests and mails that this gateway sends. Failed ones stay until you retry them.",
  empty: "No deliveries match the filters.",
  act: "replayDeliveries",
  selectable: (d) => d.state === "dead" || arrived(d),
  selects: "that have ended",
  head: (filter, signal) => (Object.keys(filter).length ? "" : causes(["dead"], signal, { limit: 3 })),
  load: async (query, signal) => {
    await loadRules(signal).catch(() => {});
    return call("listDeliveries", { query, signal });
  },
  name: (d) => kinds[d.kind] || d.kind,
  detail: deliveryDetail,
  columns: [
    { head: "Delivery", cell: () => "", value: (d) => d.kind },
    { head: "About", cell: about, value: about },
    { head: "Created", cell: (d) => when(d.created_at), value: (d) => d.created_at, first: true },
    { head: "Account", cell: (d) => account(d.account), value: (d) => accountName(d.account), rest: true },
    { head: "Target", cell: (d) => parted(cut(d.target, 80)), value: (d) => d.target, rest: true, roomy: true },
    {
      head: "State",
      cell: (d) => [state(d.state), nextAttempt(d) && h("div", { class: "hint" }, nextAttempt(d))],
      value: (d) => stateWord(d.state)
    },
    { head: "Reason", cell: (d) => long(cut(reasonOf(d), 160)), value: reasonOf },
    { head: "Attempts", cell: (d) => d.attempts.length, value: (d) => d.attempts.length, number: true, rest: true }
  ],
  actions: (ctx) =>
    [
      onSelected(ctx, "replayDeliveries", "Replay selected", (b) =>
        replayDeliveries(b, ctx, [...ctx.chosen.values()])
      ),
      (!ctx.filter.state || ctx.filter.state === "dead") &&
        onAll(ctx, "replayDeliveries", "Replay all failed that match", (b) =>
          replayDeliveries(b, ctx, null, { ...ctx.filter, state: "dead" })
        )
    ].filter(Boolean)
});
