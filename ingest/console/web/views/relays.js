// Relays of all accounts: which number goes where. One has a page of its own, relay.js.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { button, code, h } from "../core/dom.js";
import { actionWord } from "../core/filters.js";
import { listing } from "../core/list.js";
import { may } from "../core/session.js";
import { addRelay, destinations, showRelay } from "./relay.js";
import { relayNumber } from "./relaynames.js";

const list = (main, params, signal) =>
  listing({
    view: "relays",
    op: "listRelaysOfAccounts",
    title: "Relays",
    intro: "Inbound messages go to the relay of their number, else to the longest matching prefix.",
    key: (r) => r.account + "/" + r.kind + "/" + r.id,
    empty: (filter) =>
      Object.keys(filter).length
        ? "No relays match the filters."
        : [
            h("p", null, "No relays yet, so inbound messages are not routed."),
            may("createNumberRelay") &&
              h(
                "p",
                { class: "bar" },
                button("Add relay", () => addRelay(), { class: "main" })
              )
          ],
    add: () =>
      may("createNumberRelay") && button("Add relay", () => addRelay({ account: params.account }), { class: "main" }),
    actions: () => [may("explainRelay") && link("explain", {}, "Test a relay")],
    columns: [
      {
        head: "Number or prefix",
        value: (r) => r.number,
        cell: (r) => [
          link("relays", { id: r.id, kind: r.kind, account: String(r.account) }, relayNumber(r)),
          h("div", { class: "hint" }, r.id)
        ]
      },
      { head: "Kind", value: (r) => r.kind, cell: (r) => (r.kind === "geo" ? "Prefix" : "Virtual number") },
      { head: "Action", value: (r) => r.action, cell: (r) => actionWord(r.action) },
      { head: "To", value: (r) => (r.parameters || []).join(" "), cell: destinations },
      { head: "Condition", value: (r) => r.filter, cell: (r) => code(r.filter), rest: true },
      { head: "Account", value: (r) => r.account_name, cell: (r) => account(r.account), rest: true }
    ]
  })(main, params, signal);

export const show = (main, params, signal) => (params.id ? showRelay : list)(main, params, signal);
