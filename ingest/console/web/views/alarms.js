// Alarms of one or all accounts, their acknowledgement, and mutes.

import { account, accountName } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, h, long, pairs, stamp, state, table, when } from "../core/dom.js";
import { field } from "../core/form.js";
import { cut, lasted } from "../core/format.js";
import { listing, onSelected } from "../core/list.js";
import { may, mayChange } from "../core/session.js";
import {
  acknowledge,
  alarmActions,
  alarmDevice,
  alarmReadings,
  alarmState,
  alarmSummary,
  isMuted,
  loadRules,
  ruleLink,
  ruleName
} from "./alarmparts.js";

const device = (a) => link("devices", { id: a.device_id, account: String(a.account) }, alarmDevice(a));

function alarmDetail(a, ctx) {
  const note = field("note", "Note", "text", a.note, { maxlength: 500, wide: true });
  return [
    pairs([
      ["Rule", ruleLink(a)],
      ["Device", device(a)],
      ["Account", account(a.account)],
      ["State", state(a.state)],
      ["Raised", [stamp(a.raised_at), " UTC"]],
      ["Cleared", a.cleared_at && [stamp(a.cleared_at), " UTC"]],
      ["Acknowledged", a.acknowledged_at && [stamp(a.acknowledged_at), " UTC by " + a.acknowledged_by]],
      ["Note", a.note],
      ["Muted until", isMuted(a) && [stamp(a.muted_until), " UTC"]],
      ["Alarm", code(a.id)]
    ]),
    h("h3", null, "Readings that raised it"),
    table("Readings of " + a.id, ["Reading", "Value"], alarmReadings(a), "No readings.", { compact: true }),
    mayChange() && note,
    h(
      "p",
      { class: "bar" },
      mayChange() &&
        button(
          a.acknowledged_at ? "Acknowledge again" : "Acknowledge",
          (x) => acknowledge(x.target, ctx.said, [a], note.querySelector("input").value.trim(), ctx.again),
          { class: "main" }
        ),
      link("deliveries", { account: a.account, relay: a.rule_id, q: a.id }, "Deliveries"),
      may("tryRule") &&
        link("tryrule", { account: a.account, rule_id: a.rule_id, device_id: a.device_id }, "Test a rule")
    )
  ];
}

export const show = (main, params, signal) => {
  let ctxNow = null;
  return listing({
    view: "alarms",
    op: "listAlarmsOfAccount",
    title: "Alarms",
    sorted: "-Raised",
    intro: "Alarms that rules raised, newest first.",
    act: mayChange,
    empty: "No alarms match the filters.",
    name: () => "",
    selectable: (a) => !a.acknowledged_at,
    selects: "not acknowledged",
    detail: alarmDetail,
    load: async (query, stop) => {
      await loadRules(stop).catch(() => {});
      return call("listAlarmsOfAccount", { query, signal: stop });
    },
    columns: [
      { head: "Device", value: alarmDevice, cell: device },
      { head: "Rule", value: ruleName, cell: ruleLink },
      { head: "Readings", value: alarmSummary, cell: (a) => long(cut(alarmSummary(a), 90)) },
      {
        head: "State",
        value: (a) => a.state,
        cell: alarmState
      },
      { head: "Raised", value: (a) => a.raised_at, cell: (a) => when(a.raised_at), first: true },
      {
        head: "Duration",
        value: (a) => (a.cleared_at ? Date.parse(a.cleared_at) - Date.parse(a.raised_at) : ""),
        cell: (a) => a.cleared_at && h("span", { class: "nowrap" }, lasted(a.raised_at, a.cleared_at)),
        rest: true
      },
      { head: "Account", value: (a) => accountName(a.account), cell: (a) => account(a.account), rest: true },
      { head: "Change", cell: (a) => alarmActions(a, ctxNow.said, ctxNow.again) }
    ],
    actions: (ctx) => {
      ctxNow = ctx;
      return [
        onSelected(ctx, mayChange, "Acknowledge selected", (b) =>
          acknowledge(b, ctx.said, [...ctx.chosen.values()], "", ctx.again)
        )
      ];
    }
  })(main, params, signal);
};
