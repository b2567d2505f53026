// Alarms of one or all accounts, and their acknowledgement.

import { call } from "../core/api.js";
import { button, code, h, long, pairs, stamp, state, table } from "../core/dom.js";
import { during, field } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onSelected } from "../core/list.js";
import { link } from "../core/router.js";
import { may } from "../core/session.js";
import { account } from "../core/accounts.js";
import { valueOf } from "./try.js";

async function acknowledge(clicked, ctx, chosen, note) {
  await during(clicked, ctx.said, async () => {
    for (const a of chosen) await call("acknowledgeAlarm", { path: { alarm_id: a.id }, body: { account: a.account, acknowledged: true, note } });
    ctx.again();
    return plural(chosen.length, "alarm is", "alarms are") + " acknowledged.";
  });
}

const device = (a, text) => link("devices", { id: a.device_id, account: String(a.account) }, text);
const readings = (a) => Object.entries(a.readings).map(([key, v]) => [key, valueOf(v) + (v.units && " " + v.units)]);

function alarmDetail(a, ctx) {
  const note = field("note", "Note", "text", a.note, { maxlength: 500 });
  return [pairs([["Alarm", code(a.id)], ["Account", account(a.account)], ["Rule", code(a.rule_id)], ["Device", device(a, a.device_name || a.device_id)], ["State", state(a.state)], ["Raised", stamp(a.raised_at)], ["Cleared", stamp(a.cleared_at)],
    ["Acknowledged", a.acknowledged_at && [stamp(a.acknowledged_at), " by " + a.acknowledged_by]], ["Note", a.note]]),
  h("h3", null, "Readings of the uplink that raised it"), table("Readings of " + a.id, ["Key", "Value"], readings(a), "None: no uplink raised it."),
  may("acknowledgeAlarm") && note, h("p", { class: "bar" }, may("acknowledgeAlarm") && button(a.acknowledged_at ? "Acknowledge again" : "Acknowledge", (x) => acknowledge(x.target, ctx, [a], note.querySelector("input").value.trim()), { class: "main" }),
    link("deliveries", { account: a.account, relay: a.rule_id, q: a.id }, "Its deliveries"), may("tryRuleOfAccount") && link("tryrule", { account: a.account, rule_id: a.rule_id, device_id: a.device_id }, "Try its rule"))];
}

export const show = listing({
  view: "alarms", op: "listAlarmsOfAccount", title: "Alarms", intro: "What rules have raised, newest first. Open one for its readings, and to acknowledge it with a note.",
  act: "acknowledgeAlarm",
  empty: "No alarm matches. What rules raise would be here, with its history.",
  heads: ["Alarm", "Raised (UTC)", "Account", "Rule", "Device", "Readings", "State", "Acknowledged"], name: (a) => cut(a.id, 12), selectable: (a) => !a.acknowledged_at, detail: alarmDetail,
  cells: (a) => [stamp(a.raised_at), account(a.account), link("rules", { account: String(a.account), open: a.account + "-" + a.rule_id }, a.rule_id), device(a, cut(a.device_name || a.device_id, 24)), readings(a).slice(0, 3).map(([key, value]) => h("div", null, key + " " + value)), [state(a.state), a.cleared_at && h("div", null, stamp(a.cleared_at))], a.acknowledged_by && [a.acknowledged_by, a.note && h("div", { class: "hint" }, long(cut(a.note, 80)))]],
  actions: (ctx) => [onSelected(ctx, "acknowledgeAlarm", "Acknowledge selected", (b) => acknowledge(b, ctx, [...ctx.chosen.values()], ""))],
});
