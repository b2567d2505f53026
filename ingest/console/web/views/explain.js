// Explain: which relay takes an inbound message, and the exact request.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { code, h, pairs, pre, state, table } from "../core/dom.js";
import { asking, field } from "../core/form.js";
import { json } from "../core/format.js";
import { link } from "../core/router.js";

export function request(r) {
  const mail = r.mail && [h("h3", null, "Mail to " + r.mail.to), pairs([["Subject", r.mail.subject], ...Object.entries(r.mail.headers)]), pre(r.mail.text)];
  const sim = r.sim && [h("h3", null, "To the SIM " + r.sim.iccid), pre(json(r.sim))];
  const sms = r.sms && [h("h3", null, "SMS to " + r.sms.to), pairs([["From", r.sms.originator || "the carrier's own originator"]]), pre(r.sms.text)];
  const http = r.method && [h("h3", null, r.method + " request"), pre(r.url), pairs(Object.entries(r.headers || {})), r.body && pre(r.body)];
  return h("div", { class: "sheet" }, r.refused && h("p", { class: "wrong" }, "It would not be made: " + r.refused), http, mail, sim, sms);
}

const relayLink = (r, text) => link("relays", { id: r.id, kind: r.kind, account: String(r.account) }, text);

// explained shows which relay takes a message, and why.
export function explained(e) {
  const m = e.matched;
  const verdict = m ? [state("taken"), " Taken by the ", relayLink(m, m.kind + " relay " + m.id), " of account ", account(m.account), ": it " + m.why + ". Action " + m.action + "."] : [state(e.state), " Nobody takes it: " + (e.reason || e.outcome)];
  const rows = e.considered.map((c) => [c.kind, relayLink(c, c.id), account(c.account), c.why, c.filter ? [code(c.filter), c.holds ? " holds" : " does not hold"] : ""]);
  return [h("h2", null, "Verdict"), h("p", { class: "sheet", id: "verdict" }, verdict, e.joined && h("span", { class: "hint" }, " It is part " + e.joined.part + " of " + e.joined.total + "; missing: " + e.joined.missing.join(", ") + ".")),
    m && m.parameters.length > 0 && pairs([["Parameters", m.parameters.map((p) => pre(p))], ["Condition", code(m.filter)]]),
    h("h2", null, "Relays whose number or prefix fits"), table("Relays considered", ["Kind", "Relay", "Account", "Why", "Condition"], rows, "None. Relays of this number or a prefix of it would be here, the first that is taken first."),
    h("h2", null, "What would go out"), e.requests.length ? [h("p", { class: "hint" }, "Exactly as it would go out now, secrets included. Nothing was saved or sent."), e.requests.map(request)] : h("p", { class: "empty" }, "Nothing."),
    h("h2", null, "The message as relays see it"), pre(json(e.message))];
}

export const show = asking({
  view: "explain", title: "Explain", intro: "Which relay takes an inbound message, why the others do not, and the exact request. Nothing is saved or sent.", go: "Explain",
  fields: (p) => [field("to", "To (destination)", "text", p.to, { required: true, inputmode: "tel" }), field("from", "From (originator)", "text", p.from || "447700900123", { required: true }),
    field("account", "Account (empty: all)", "text", p.account), field("text", "Text", "area", p.text || (p.data ? "" : "Test")), field("data", "or octets in hex", "text", p.data),
    field("udh", "User data header, hex", "text", p.udh), field("coding", "Coding", ["", "7", "8", "16"], p.coding, { blank: "by the text" })],
  ready: (p) => p.to,
  ask: async (v, signal) => {
    const body = { ...v };
    if (body.coding) body.coding = Number(body.coding);
    return explained(await call("explainRelay", { body, signal }));
  },
});
