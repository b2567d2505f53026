// Alarms of an account, and their acknowledgement.

import { call } from "../core/api.js";
import { button, code, h, long, pairs, stamp, state, table } from "../core/dom.js";
import { during, field } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onSelected } from "../core/list.js";
import { link } from "../core/router.js";
import { valueOf } from "./try.js";

async function acknowledge(clicked, ctx, chosen, note) {
  await during(clicked, ctx.said, async () => {
    for (const a of chosen) await call("acknowledgeAlarm", { path: { alarm_id: a.id }, body: { account: a.account, acknowledged: true, note } });
    ctx.again();
    return plural(chosen.length, "alarm is", "alarms are") + " acknowledged.";
  });
}

function alarmDetail(a, ctx) {
  const rows = Object.entries(a.readings).map(([key, v]) => [key, valueOf(v) + (v.units && " " + v.units)]);
  const note = field("note", "Note", "text", a.note, { maxlength: 500 });
  return [pairs([["Alarm", code(a.id)], ["Rule", code(a.rule_id)], ["Device", code(a.device_id)], ["State", state(a.state)], ["Raised", stamp(a.raised_at)], ["Cleared", stamp(a.cleared_at)],
    ["Acknowledged", a.acknowledged_at && [stamp(a.acknowledged_at), " by " + a.acknowledged_by]], ["Note", a.note]]),
  h("h3", null, "Readings of the uplink that raised it"), table("Readings of " + a.id, ["Key", "Value"], rows, "None: no uplink raised it."),
  note, h("p", { class: "bar" }, button(a.acknowledged_at ? "Acknowledge again" : "Acknowledge", (x) => acknowledge(x.target, ctx, [a], note.querySelector("input").value.trim()), { class: "main" }),
    link("deliveries", { account: a.account, relay: a.rule_id, q: a.id }, "Its deliveries"), link("tryrule", { account: a.account, rule_id: a.rule_id, device_id: a.device_id }, "Try its rule"))];
}

export const show = listing({
  view: "alarms", op: "listAlarmsOfAccount", title: "Alarms", intro: "What the rules of an account have raised, newest first. Open one for its readings, and to acknowledge it with a note.",
  lacks: (filter) => !filter.account && "Give an account's name or id: alarms are listed by account. The inventory shows them.",
  empty: "No alarm matches. What rules raise would be here, with its history.",
  heads: ["Alarm", "Raised (UTC)", "Rule", "Device", "State", "Cleared (UTC)", "Acknowledged by", "Note"], name: (a) => cut(a.id, 12), selectable: (a) => !a.acknowledged_at, detail: alarmDetail,
  cells: (a) => [stamp(a.raised_at), a.rule_id, a.device_id, state(a.state), stamp(a.cleared_at), a.acknowledged_by, long(cut(a.note, 80))],
  actions: (ctx) => [onSelected(ctx, "Acknowledge selected", (b) => acknowledge(b, ctx, [...ctx.chosen.values()], ""))],
});
