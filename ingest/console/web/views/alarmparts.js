// Alarms and rules in several views.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, state } from "../core/dom.js";
import { during } from "../core/form.js";
import { plural } from "../core/format.js";
import { mayChange } from "../core/session.js";
import { keyName, valueOf } from "./deviceparts.js";
import { muteIn, unmute } from "./mutes.js";
import { records } from "./pickers.js";

const rules = records("listRulesOfAccount");
export const loadRules = rules.load;
const ruleOf = (a) => rules.get(a.account, a.rule_id);
export const ruleName = (a) => (ruleOf(a) && ruleOf(a).name) || a.rule_id;

export const conditionOf = (a) => (ruleOf(a) && ruleOf(a).when) || "";

// looksAt reports whether a condition looks at a value.
export const looksAt = (condition, key) =>
  condition.includes('values["' + key + '"]') || condition.split(/[^\w.]+/).includes("values." + key);

// alarmReadings returns the readings of an alarm; the values of the rule's condition come first.
export const alarmReadings = (a) =>
  Object.entries(a.readings)
    .sort(([one], [other]) => looksAt(conditionOf(a), other) - looksAt(conditionOf(a), one))
    .map(([key, v]) => [keyName(key), valueOf(v) + (v.units ? "\u00a0" + v.units : "")]);

// alarmSummary is the first two readings in a line.
export const alarmSummary = (a) =>
  alarmReadings(a)
    .slice(0, 2)
    .map((r) => r.join(" "))
    .join(", ");

export const ruleLink = (a) => link("rules", { id: a.rule_id, account: String(a.account) }, ruleName(a));
export const alarmDevice = (a) => a.device_name || a.device_id;
// alarmState shows whether an alarm is raised, muted and acknowledged.
export const alarmState = (a) => [
  state(a.state),
  isMuted(a) && [" ", state("muted")],
  a.acknowledged_at && h("div", { class: "hint" }, "acknowledged by " + a.acknowledged_by)
];
export const isMuted = (a) => a.muted_until && Date.parse(a.muted_until) > Date.now();

// acknowledge acknowledges alarms with a note; again() follows.
export async function acknowledge(clicked, place, alarms, note, again) {
  await during(clicked, place, async () => {
    for (const a of alarms)
      await call("patchAlarm", {
        path: { alarm_id: a.id },
        body: { acknowledged: true, note },
        as: String(a.account)
      });
    again();
    return plural(alarms.length, "alarm is", "alarms are") + " acknowledged.";
  });
}

// alarmActions are the buttons that acknowledge and mute an alarm. Results are written into place;
// again() follows.
export function alarmActions(a, place, again) {
  if (!mayChange()) return "";
  const of = ruleName(a) + " of " + alarmDevice(a);
  const target = {
    account: a.account,
    rule_id: a.rule_id,
    rule_name: ruleName(a),
    device_id: a.device_id,
    device_name: alarmDevice(a)
  };
  const say = (text) => {
    place.replaceChildren(h("p", { class: "said" }, text));
    again();
  };
  const end = (e) =>
    during(e.target, place, async () => {
      await unmute(a);
      again();
      return "The mute is ended.";
    });
  return h(
    "span",
    { class: "bar tight" },
    !a.acknowledged_at &&
      button("Acknowledge", (e) => acknowledge(e.target, place, [a], "", again), { "aria-label": "Acknowledge " + of }),
    isMuted(a)
      ? button("Unmute", end, { "aria-label": "Unmute " + of })
      : button("Mute", () => muteIn(target, say), { "aria-label": "Mute " + of })
  );
}
