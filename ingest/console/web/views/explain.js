// Test a relay: the relay of an inbound message, and the exact request.

import { account, accountNames } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { code, h, pairs, pre, state, table } from "../core/dom.js";
import { actionWord } from "../core/filters.js";
import { asking, field, pick } from "../core/form.js";
import { capital, json, plural } from "../core/format.js";
import { loadRelays, relayName } from "./relaynames.js";

export function request(r) {
  const mail = r.mail && [
    h("h3", null, "Email to " + r.mail.to),
    pairs([["Subject", r.mail.subject], ...Object.entries(r.mail.headers)]),
    pre(r.mail.text)
  ];
  const sim = r.sim && [h("h3", null, "To the SIM " + r.sim.iccid), pre(json(r.sim))];
  const sms = r.sms && [
    h("h3", null, "SMS to " + r.sms.to),
    pairs([["From", r.sms.originator || "(default sender)"]]),
    pre(r.sms.text)
  ];
  const http = r.method && [
    h("h3", null, "HTTP request"),
    pre(r.method + " " + r.url),
    pairs(Object.entries(r.headers || {})),
    r.body && pre(r.body)
  ];
  return h(
    "div",
    { class: "sheet" },
    r.refused && h("p", { class: "wrong" }, "Refused: " + r.refused),
    http,
    mail,
    sim,
    sms
  );
}

const kinds = { vmn: "virtual number", geo: "prefix" };
// relayLink leads to a relay by its number, as soon as that is loaded; the id is shown on hover.
function relayLink(r) {
  const shown = link("relays", { id: r.id, kind: r.kind, account: String(r.account) }, relayName(r));
  shown.title = "Relay " + r.id;
  loadRelays().then(
    () => {
      shown.textContent = relayName(r);
    },
    () => {}
  );
  return shown;
}

// explained shows which relay takes a message, and why.
export function explained(e) {
  const m = e.matched;
  const verdict = m
    ? [
        state("done", "relayed"),
        " The " + kinds[m.kind] + " relay ",
        relayLink(m),
        " of the account ",
        account(m.account),
        " takes the message: " + m.why + ". Action: " + actionWord(m.action) + "."
      ]
    : [state(e.state), " No relay takes the message: " + (e.reason || e.outcome).replace(/\.?$/, ".")];
  const parts =
    e.joined &&
    h(
      "span",
      { class: "hint" },
      " Part " + e.joined.part + " of " + e.joined.total + "; missing: " + e.joined.missing.join(", ") + "."
    );
  const rows = e.considered.map((c) => [
    capital(kinds[c.kind]),
    relayLink(c),
    account(c.account),
    c.why,
    c.filter ? [code(c.filter), c.holds ? " is met" : " is not met"] : ""
  ]);
  return [
    h("h2", null, "Result"),
    h(
      "div",
      { class: "sheet", id: "verdict" },
      h("p", null, verdict, parts),
      m &&
        m.parameters.length > 0 &&
        pairs([
          [m.action.startsWith("http") ? "URL" : "Parameters", m.parameters.map((p) => pre(p))],
          ["Condition", code(m.filter)]
        ])
    ),
    h("h2", null, "Matching relays"),
    table("Matching relays", ["Kind", "Relay", "Account", "Why", "Condition"], rows, "No relay matches this number.", {
      compact: true
    }),
    h("h2", null, "Requests"),
    e.requests.length
      ? [
          h(
            "p",
            { class: "hint" },
            plural(e.requests.length, "request") + ". Secrets are shown."
          ),
          e.requests.map(request)
        ]
      : h("p", { class: "empty" }, "No request."),
    h("details", null, h("summary", null, "The message as relays see it"), pre(json(e.message)))
  ];
}

export const show = asking({
  view: "explain",
  title: "Test a relay",
  intro: "Shows which relay would take an inbound SMS, and what it would send. Nothing is saved or sent.",
  go: "Test",
  fields: (p) => [
    field("to", "To (destination)", "tel", p.to, { required: true }),
    field("from", "From (originator)", "text", p.from || "447700900123", { required: true }),
    pick("account", "Account", accountNames, p.account),
    field("text", "Text", "area", p.text || (p.data ? "" : "Test")),
    h(
      "details",
      { class: "wide", open: Boolean(p.data || p.udh || p.coding) },
      h("summary", null, "Binary message"),
      h(
        "div",
        { class: "fields" },
        field("data", "Octets in hex, in place of the text", "text", p.data),
        field("udh", "User data header in hex", "text", p.udh),
        field("coding", "Coding", ["", "7", "8", "16"], p.coding, { blank: "As the text needs" })
      )
    )
  ],
  ready: (p) => p.to,
  ask: async (v, signal) => {
    const body = { ...v };
    if (body.coding) body.coding = Number(body.coding);
    return explained(await call("explainRelay", { body, signal }));
  }
});
