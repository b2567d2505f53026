// What was changed over the admin API, and who did.

import { account } from "../core/accounts.js";
import { code, h, long, pairs, pre, stamp, state } from "../core/dom.js";
import { cut } from "../core/format.js";
import { listing } from "../core/list.js";

const json = (value) => value !== null && pre(JSON.stringify(value, null, 2));

const detail = (e) => [pairs([["Entry", code(e.id)], ["At (UTC)", stamp(e.at)], ["Who", e.actor + ", " + e.role], ["From", e.address], ["Operation", code(e.operation)],
  ["Target", e.target], ["Account", account(e.account)], ["Outcome", [state(e.outcome), " ", String(e.status)]]]),
e.request !== null && [h("h3", null, "Request"), json(e.request)], e.before !== null && [h("h3", null, "Before"), json(e.before)], e.after !== null && [h("h3", null, "After"), json(e.after)]];

export const show = listing({
  view: "audit", op: "listAudit", title: "Audit log", intro: "What was changed over the admin API, newest first: by users and with the admin token. Open an entry for what differs before and after. Secrets are masked.",
  empty: "No entry matches. Every change over the admin API would be here.",
  heads: ["Entry", "At (UTC)", "Who", "Role", "Operation", "Target", "Account", "Outcome"], name: (e) => cut(e.id, 12), detail,
  cells: (e) => [stamp(e.at), e.actor, e.role, code(e.operation), long(cut(e.target, 40)), account(e.account), state(e.outcome)],
});
