// Rules of one or all accounts: conditions and actions.

import { account } from "../core/accounts.js";

import { code, h, pairs, stamp, state, table } from "../core/dom.js";
import { cut, plural } from "../core/format.js";
import { listing } from "../core/list.js";
import { link } from "../core/router.js";

const devicesOf = (d) => Object.entries(d).map(([name, value]) => name + " " + [value].flat().join(", ")).join("; ") || "all";

function ruleDetail(r) {
  const rows = r.actions.map((a) => [a.action, a.parameters.map((p) => h("div", null, code(p))), code(a.body), a.originator]);
  return [pairs([["Rule", code(r.id)], ["Name", r.name], ["Account", account(r.account)], ["Looks at", r.on], ["Devices", devicesOf(r.devices)], ["When", code(r.when)], ["Clear", code(r.clear)], ["For", r.for], ["Silent for", r.silent_for],
    ["Repeat", r.repeat], ["Batch", r.batch && [r.batch.count && plural(r.batch.count, "frame"), r.batch.every].filter(Boolean).join(" or ")], ["Ordered", r.ordered && "yes"],
    ["Failures", r.failures.count > 0 && r.failures.count + " since it was changed; the last: " + r.failures.last], ["Created", stamp(r.created_at)], ["Changed", stamp(r.updated_at)]]),
  h("h3", null, "Actions"), table("Actions of " + r.id, ["Action", "Parameters", "Body", "Originator"], rows, "None."),
  h("p", { class: "bar" }, link("alarms", { account: r.account, rule_id: r.id }, "Its alarms"), link("deliveries", { account: r.account, relay: r.id, kind: "rule" }, "Its deliveries"),
    link("tryrule", { account: r.account, rule_id: r.id }, "Try it"))];
}

export const show = listing({
  view: "rules", op: "listRulesOfAccount", title: "Rules", intro: "What follows from the frames of devices, their events and their silence. Accounts change their rules over REST, an inventory declares them.",
  empty: "No rule matches. One that raises alarms or forwards readings would be here.",
  heads: ["Rule", "Account", "Name", "Looks at", "Condition", "Actions", "State", "Failures"], name: (r) => cut(r.id, 26), key: (r) => r.account + "-" + r.id, detail: ruleDetail,
  cells: (r) => [account(r.account), r.name, r.on, code(r.when ? cut(r.when, 80) : r.silent_for || ""), [...new Set(r.actions.map((a) => a.action))].join(", "), state(r.enabled ? "enabled" : "disabled"), r.failures.count || ""],
});
