// Messages of all accounts, sent and received, newest first.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, due, h, long, pairs, pre, stamp, state, table, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { eventOf, iso, plural, stateWord } from "../core/format.js";
import { listing, onSelected } from "../core/list.js";
import { may, mayChange, ownAccount } from "../core/session.js";
import { nextAttempt } from "./deliveries.js";
import { eventDetail, eventState } from "./events.js";

const lost = (m) => (m.parts || []).filter((p) => p.state === "unknown").length;
const failedStates = ["undelivered", "rejected"];
const failed = (m) => (m.parts || []).some((p) => failedStates.includes(p.state));

async function resend(clicked, ctx, chosen) {
  const parts = chosen.reduce((n, m) => n + lost(m), 0);
  await during(clicked, ctx.said, async () => {
    const sure = await ask(
      "Retry " + plural(parts, "part") + " of " + plural(chosen.length, "message") + "?",
      "The carrier's answer was lost, so the phone may receive them twice. Nothing is charged.",
      "Retry " + parts
    );
    if (!sure) return "";
    let sum = 0;
    for (const acct of new Set(chosen.map((m) => m.account))) {
      const ids = chosen.filter((m) => m.account === acct).map((m) => String(m.id));
      sum += (await call("resendMessages", { body: { account: acct, ids } })).count;
    }
    ctx.again();
    return plural(sum, "part is", "parts are") + " retried.";
  });
}

// repeat sends the text of a message that failed as a new one.
async function repeat(clicked, ctx, m) {
  await during(clicked, ctx.said, async () => {
    const sure = await ask(
      "Send this message to " + m.destination + " again?",
      "It is sent as a new message and charged as one.",
      "Send"
    );
    if (!sure) return "";
    await call("sendMessage", {
      as: String(m.account),
      body: {
        destinations: [m.destination],
        message: messageText(m),
        ...(m.originator ? { originator: m.originator } : {})
      }
    });
    ctx.again();
    return "The message is sent again as a new one.";
  });
}

// codes are the results of a whole message in delivery reports.
const codes = {
  1: "delivered",
  2: "not delivered: rejected by the phone",
  4: "buffered by the carrier",
  8: "accepted by the carrier",
  16: "refused by the carrier"
};
const codeWords = (n) => (n ? (codes[n] || "state") + " (code " + n + ")" : "nothing yet");

const codings = { 7: "GSM alphabet (7 bits)", 8: "binary (8 bits)", 16: "UCS-2 (16 bits)" };

function outboundDetail(m, ctx) {
  const reasons = [...new Set(m.parts.map((p) => p.reason).filter(Boolean))];
  const rows = m.parts.map((p, i) => [
    [
      h("b", { class: "nowrap" }, "Part " + (i + 1) + " of " + m.parts.length),
      h("span", { class: "hint" }, " " + p.id)
    ],
    [state(p.state), " ", p.simulated && p.state !== "simulated" && state("simulated")],
    p.carrier,
    code(p.carrier_id),
    p.reason,
    p.report,
    stamp(p.changed_at),
    pre(p.data)
  ]);
  return [
    failed(m) && h("p", { class: "wrong" }, "Not delivered: " + (reasons.join("; ") || codeWords(m.code)) + "."),
    pairs([
      ["Message", m.id],
      ["From", m.originator || "(default sender)"],
      ["To", m.destination],
      ["Coding", codings[m.coding] || m.coding],
      ["Received via", m.origin.toUpperCase() + " (" + m.ip + ")"],
      ["Received", [stamp(m.received_at), " UTC"]],
      ["Scheduled for", m.scheduled_for !== m.received_at && [stamp(m.scheduled_for), " UTC"]],
      ["Delivery reports to", code(m.report_to)],
      ["Reported as", codeWords(m.code)],
      ["Account", account(m.account)]
    ]),
    h("h3", null, "Parts"),
    table(
      "Parts of " + m.id,
      ["Part", "State", "Carrier", "Carrier's ID", "Reason", "Delivery receipt", "Changed (UTC)", "Text"],
      rows,
      "No parts."
    ),
    h(
      "p",
      { class: "bar" },
      lost(m) > 0 &&
        may("resendMessages") && [
          button("Retry the lost parts", (x) => resend(x.target, ctx, [m])),
          h("span", { class: "hint" }, "Nothing is charged. The phone may receive them twice.")
        ],
      failed(m) &&
        mayChange() &&
        !m.hidden && [
          button("Send again as a new message", (x) => repeat(x.target, ctx, m)),
          h("span", { class: "hint" }, "It is sent as a new message and charged.")
        ]
    )
  ];
}

// withDeliveries adds their deliveries to the received messages of a page. A delivery has the id of the
// message's event, with a number if the event has several messages.
async function withDeliveries(found, query, signal) {
  const events = found.data.filter((m) => m.event).map((m) => Object.assign(m.event, { deliveries: [] }));
  if (!events.length || !may("listDeliveries")) return found;
  const to = query.cursor ? iso(Date.parse(events[0].received_at) + 60_000) : "";
  const { data } = await call("listDeliveries", {
    query: {
      account: query.account,
      kind: "relay",
      number: query.number,
      from: events.at(-1).received_at,
      to,
      limit: 500
    },
    signal
  }).catch((error) => {
    found.meta = { ...found.meta, stale: "The deliveries of received messages are missing: " + error.message };
    return { data: [] };
  });
  for (const e of events) e.deliveries = data.filter((d) => eventOf(d.message_id) === e.id);
  return found;
}

// deliveryState shows the state of a message's delivery, and when it is attempted again.
const deliveryState = (d) => {
  const text = d.state === "delivered" ? "" : "delivery " + stateWord(d.state);
  return h(
    "div",
    null,
    d.hidden ? state(d.state, text) : link("deliveries", { q: d.id, open: d.id }, state(d.state, text)),
    nextAttempt(d) && h("div", { class: "hint nowrap" }, nextAttempt(d))
  );
};

// nextPart says when the next part is sent that waits for its time.
function nextPart(m) {
  const times = m.parts.filter((p) => p.state === "pending" && Date.parse(p.scheduled_at) > Date.now());
  const [next] = times.map((p) => p.scheduled_at).sort();
  const text = next === m.scheduled_for ? "scheduled " : "next attempt ";
  return next && h("div", { class: "hint nowrap" }, text, due(next));
}

// states shows the states of the parts, with the number of parts in each if they differ; of a received
// message the state of its event and of its deliveries.
function states(m) {
  if (m.event) return [eventState(m.event.state), m.event.deliveries.map(deliveryState)];
  const counts = new Map();
  for (const p of m.parts) counts.set(p.state, (counts.get(p.state) || 0) + 1);
  const parts = [...counts].map(([s, n]) => [
    state(s),
    counts.size > 1 ? " " + n + " of " + m.parts.length + " " : " "
  ]);
  return [parts, nextPart(m)];
}
const stateText = (m) =>
  m.event
    ? [m.event.state, ...m.event.deliveries.map((d) => stateWord(d.state))].join(" ")
    : [...new Set(m.parts.map((p) => p.state))].join(" ");
// reasonOf is the reason of a message's state. It omits the outcome of a received message that only
// repeats the numbers.
const reasonOf = (m) =>
  m.event
    ? m.event.reason ||
      m.event.deliveries.map((d) => d.reason).find(Boolean) ||
      (m.event.outcome.startsWith("from ") ? "" : m.event.outcome)
    : m.parts.map((p) => p.reason).find(Boolean) || "";

// messageText is the text of a message; of a received one as its body has it.
function messageText(m) {
  if (!m.event) return m.parts.map((p) => p.data).join("");
  let body = {};
  try {
    body = JSON.parse(m.event.raw);
  } catch {
    body = Object.fromEntries(new URLSearchParams(m.event.raw || ""));
  }
  return String(["text", "Body", "body", "message", "content"].map((name) => body?.[name]).find(Boolean) ?? "");
}

// balance shows the remaining credit of an account.
function balance(filter, signal) {
  const acct = filter.account || ownAccount();
  if (!acct || !may("listCredit")) return "";
  const place = h("p", { class: "hint" });
  call("listCredit", { query: { account: acct, limit: 1 }, signal }).then(
    (found) =>
      place.replaceChildren(
        link("accounts", { id: acct, tab: "credit" }, plural(found.meta.balance, "credit") + " left")
      ),
    () => {}
  );
  return place;
}

const titleOf = (m) => (m.originator || (m.event ? "" : "(default sender)")) + " → " + m.destination;
const directionOf = (m) => (m.event ? "Received" : "Sent");

export const show = listing({
  view: "messages",
  op: "listMessages",
  searches: true,
  title: "Messages",
  key: (m) => (m.event ? m.event.id : m.id),
  head: balance,
  intro:
    "Sent and received SMS, newest first. Messages in the state Unknown need a decision; rejected ones are not resent.",
  sorted: "-Time",
  empty: "No messages match the filters.",
  load: async (query, signal) => withDeliveries(await call("listMessages", { query, signal }), query, signal),
  act: "resendMessages",
  selectable: (m) => lost(m) > 0,
  selects: "with lost parts",
  name: titleOf,
  detail: (m, ctx) =>
    m.event
      ? [messageText(m) && pre(messageText(m)), eventDetail(m.event, ctx, m.event.deliveries.map(deliveryState))]
      : outboundDetail(m, ctx),
  columns: [
    { head: "Message", value: titleOf, cell: (m) => h("div", { class: "hint" }, directionOf(m)) },
    { head: "Direction", value: directionOf, exported: true },
    { head: "Time", value: (m) => m.received_at, cell: (m) => when(m.received_at), first: true },
    { head: "From", value: (m) => m.originator, exported: true },
    { head: "To", value: (m) => m.destination, exported: true },
    { head: "State", value: stateText, cell: states },
    { head: "Reason", value: reasonOf, cell: (m) => long(reasonOf(m)), roomy: true },
    { head: "Text", value: messageText, cell: (m) => long(messageText(m), 60), roomy: true },
    { head: "Account", value: (m) => m.account, cell: (m) => account(m.account), rest: true }
  ],
  actions: (ctx) => [
    onSelected(ctx, "resendMessages", "Retry lost parts", (b) => resend(b, ctx, [...ctx.chosen.values()]))
  ]
});
