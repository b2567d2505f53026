// Alarms and rules in several views.

import { all, call } from "../core/api.js";
import { button } from "../core/dom.js";
import { during } from "../core/form.js";
import { may, mayChange } from "../core/session.js";

// rules has the rules of all accounts; loadRules loads them again after half a minute.
const rules = new Map();
let loadedAt = 0;
export async function loadRules(signal) {
  if (Date.now() - loadedAt < 30_000 || !may("listRulesOfAccount")) return;
  loadedAt = Date.now();
  for (const r of await all("listRulesOfAccount", { signal })) rules.set(r.account + "-" + r.id, r);
}
const ruleOf = (a) => rules.get(a.account + "-" + a.rule_id);
export const ruleName = (a) => (ruleOf(a) && ruleOf(a).name) || a.rule_id;
// senderName is the name of a delivery's rule, or the id of its relay.
export const senderName = (d) => (d.kind === "rule" ? ruleName({ account: d.account, rule_id: d.relay }) : d.relay);

// raising reports whether the condition of an alarm's rule looks at a value.
export const raising = (a, key) =>
  Boolean(ruleOf(a) && (ruleOf(a).when || "").split(/[^\w.]+/).includes("values." + key));

// acknowledgeIn is the button that acknowledges an alarm; nothing if it is acknowledged.
export function acknowledgeIn(a, note, again) {
  if (a.acknowledged_at || !mayChange()) return "";
  return button("Acknowledge", (e) =>
    during(e.target, note, async () => {
      await call("patchAlarm", {
        path: { alarm_id: a.id },
        body: { acknowledged: true, note: "" },
        as: String(a.account)
      });
      again();
      return "1 alarm is acknowledged.";
    })
  );
}
