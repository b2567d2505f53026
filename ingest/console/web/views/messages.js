// Messages: what an account sends, and the parts whose answer was lost.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, code, h, long, pairs, pre, stamp, state, table, wrong } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onSelected } from "../core/list.js";
import { link } from "../core/router.js";
import { may } from "../core/session.js";

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

// What a message is reported as, in words (specification 1, states and transitions).
const codes = { 1: "delivered", 2: "not delivered: the phone rejected it", 4: "buffered by the carrier", 8: "accepted by the carrier", 16: "refused by the carrier" };
const codeWords = (code) => (code ? (codes[code] || "state") + " (code " + code + ")" : "nothing yet");

const codings = { 7: "GSM alphabet (7 bits)", 8: "binary (8 bits)", 16: "UCS-2 (16 bits)" };

const partOf = (m, i) => (m.parts.length === 1 ? "the only one" : i + 1 + " of " + m.parts.length);

function messageDetail(m, ctx) {
  const rows = m.parts.map((p, i) => [[h("b", null, partOf(m, i)), h("span", { class: "hint" }, " " + p.id)], [state(p.state), " ", p.simulated && p.state !== "simulated" && state("simulated")], p.carrier, code(p.carrier_id), p.reason, p.report, stamp(p.changed_at), pre(p.data)]);
  return [pairs([["Message", m.id], ["From", m.originator || "the carrier's own"], ["To", m.destination], ["Coding", codings[m.coding] || m.coding], ["Taken over", m.origin + ", from " + m.ip],
    ["Received", stamp(m.received_at)], ["To be sent", stamp(m.scheduled_for)], ["Reports to", code(m.report_to)], ["Reported as", codeWords(m.code)], ["Account", account(m.account)]]),
  h("h3", null, "Parts"), table("Parts of " + m.id, ["Part", "State", "Carrier", "Carrier's id", "Reason", "Report", "Changed (UTC)", "Text"], rows, "No parts."),
  lost(m) > 0 && may("resendMessages") && h("p", { class: "bar" }, button("Send the lost parts again", (x) => resend(x.target, ctx, [m])))];
}

// states are those of the parts, with how many have each where they differ.
function states(m) {
  const counted = new Map();
  for (const p of m.parts) counted.set(p.state, (counted.get(p.state) || 0) + 1);
  return [...counted].map(([s, n]) => [state(s), counted.size > 1 ? " " + n + " of " + m.parts.length + " " : " "]);
}

// balance shows what an account has left.
function balance(filter, signal) {
  const place = h("p", { class: "sheet" });
  call("listCredit", { query: { account: filter.account, limit: 1 }, signal }).then(
    (found) => place.replaceChildren(/^[0-9]+$/.test(filter.account) ? account(Number(filter.account)) : filter.account, " has ", link("credit", { account: filter.account }, plural(found.meta.balance, "credit")), "."),
    (error) => error.name !== "AbortError" && place.replaceChildren(wrong(error)));
  return place;
}

export const show = listing({
  view: "messages", op: "listMessages", title: "Messages", intro: "What an account sends, newest first, and what became of each part. Lost answers (unknown) need a person; what a carrier rejected is not sent again.",
  lacks: (filter) => !filter.account && "Give an account's name or id: messages are listed by account.", head: balance,
  empty: "No message matches. What this account sends over REST or SOAP would be here, with the state of each part.",
  heads: ["Message", "Received (UTC)", "From", "To", "Parts", "States", "Text"], name: (m) => String(m.id), act: "resendMessages", selectable: (m) => lost(m) > 0, detail: messageDetail,
  cells: (m) => [stamp(m.received_at), m.originator, m.destination, m.parts.length, states(m), long(cut(m.parts.map((p) => p.data).join(""), 80))],
  actions: (ctx) => [onSelected(ctx, "resendMessages", "Send lost parts again", (b) => resend(b, ctx, [...ctx.chosen.values()]))],
});
