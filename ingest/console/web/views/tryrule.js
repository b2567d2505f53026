// Try a rule: on the last frames of a device, as it would judge them.

import { call } from "../core/api.js";
import { h, pairs, stamp, state } from "../core/dom.js";
import { asking, field } from "../core/form.js";
import { request } from "./explain.js";

function ruleTrialOf(v) {
  const body = { account: v.account, device_id: v.device_id };
  if (v.last) body.last = Number(v.last);
  if (!v.rule) return { ...body, rule_id: v.rule_id };
  try { return { ...body, rule: JSON.parse(v.rule) }; } catch (error) { throw new Error("A rule is a JSON object: " + error.message); }
}

const triedRule = (f) => h("div", { class: "sheet" }, pairs([["Time", stamp(f.time)], ["Condition", f.matched ? "holds" : "does not hold"], ["What would happen", f.state ? state(f.state) : "nothing"], ["Why", f.why]]), f.requests.map(request));

export const show = asking({
  view: "tryrule", title: "Try a rule", intro: "A rule on the last frames of a device, as it would judge them. Nothing is saved or sent. Name a stored rule, or give one as JSON.", go: "Try",
  fields: (p) => [field("account", "Account (name or id)", "text", p.account, { required: true }), field("device_id", "Device (its id)", "text", p.device_id, { required: true }), field("last", "Last frames", "number", p.last || "10"),
    field("rule_id", "Rule", "text", p.rule_id), field("rule", "or a rule, as POST /iot/rules takes it", "area", p.rule)],
  ready: (p) => p.account && p.device_id && (p.rule_id || p.rule),
  ask: async (v, signal) => {
    const found = (await call("tryRuleOfAccount", { body: ruleTrialOf(v), signal })).data;
    return found.length ? found.map(triedRule) : [h("p", { class: "empty" }, "The device has no frames that this rule would look at.")];
  },
});
