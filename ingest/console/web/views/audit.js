// The audit log: who changed what.

import { account, accountName } from "../core/accounts.js";
import { code, h, long, pairs, pre, stamp, state } from "../core/dom.js";
import { cut, json } from "../core/format.js";
import { listing } from "../core/list.js";

const targetOf = (e) => (e.operation === "putInventory" && e.target ? "document " : "") + e.target;
const document = (title, value) => value !== null && [h("h3", null, title), pre(json(value))];

const detail = (e) => [
  pairs([
    ["Entry", code(e.id)],
    ["Time", [stamp(e.at), " UTC"]],
    ["User", e.actor + ", " + e.role],
    ["Address", e.address],
    ["Action", e.action],
    ["Operation", code(e.operation)],
    ["Target", targetOf(e)],
    ["Account", account(e.account)],
    ["Outcome", [state(e.outcome), " ", String(e.status)]]
  ]),
  document("Request", e.request),
  document("Before", e.before),
  document("After", e.after)
];

export const show = listing({
  view: "audit",
  op: "listAudit",
  title: "Audit log",
  sorted: "-Time (UTC)",
  intro: "Open an entry to compare before and after. Secrets are masked.",
  empty: "No entries match the filters.",
  name: (e) => e.action,
  detail,
  columns: [
    { head: "Action", cell: () => "", value: (e) => e.action },
    { head: "Time (UTC)", cell: (e) => stamp(e.at.replace(/\.\d+/, "")), value: (e) => e.at },
    { head: "User", cell: (e) => e.actor, value: (e) => e.actor },
    { head: "Target", cell: (e) => long(cut(targetOf(e), 40)), value: targetOf },
    { head: "Account", cell: (e) => account(e.account), value: (e) => accountName(e.account), rest: true },
    { head: "Outcome", cell: (e) => state(e.outcome), value: (e) => e.outcome }
  ]
});
