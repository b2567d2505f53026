// Try a rule on the last frames of a device.

import { accountNames } from "../core/accounts.js";
import { all, call } from "../core/api.js";
import { h, long, stamp, state, table } from "../core/dom.js";
import { asking, field, pick } from "../core/form.js";
import { newestFirst } from "../core/format.js";
import { conditionOf, loadRules, looksAt } from "./alarmparts.js";
import { request } from "./explain.js";
import { valueOf } from "./deviceparts.js";

function trialOf(v) {
  const body = { device_id: v.device_id };
  if (v.last) body.last = Number(v.last);
  if (!v.rule) return { ...body, rule_id: v.rule_id };
  try {
    return { ...body, rule: JSON.parse(v.rule) };
  } catch (error) {
    throw new Error("The rule must be a JSON object: " + error.message);
  }
}

// reasonOf is why a frame has its effect, unless the column of the condition says so already.
const reasonOf = (f) => (/^the condition is (not )?met$/.test(f.why) ? "" : f.why);

const maxReadings = 3; // of a frame

// readingsOf shows the readings of a frame that the condition compares; if it compares none, the first.
function readingsOf(f, condition) {
  const textOf = (v) => valueOf(v) + (v.units && " " + v.units);
  const texts = Object.entries(f.readings).map(([key, v]) => [key, key + " " + textOf(v)]);
  const compared = texts.filter(([key]) => looksAt(condition, key));
  return (compared.length ? compared : texts)
    .slice(0, maxReadings)
    .map(([, text]) => text)
    .join(", ");
}

// triedRules shows the effect of a rule on frames, the newest first, and the requests that it
// would send. condition is that of the rule, "" if unknown.
export function triedRules(found, condition) {
  const frames = newestFirst([...found].reverse()); // of one second too
  return [
    table(
      "Frames",
      ["Time (UTC)", "Readings", "Condition", "Effect", "Reason"],
      frames.map((f) => [
        stamp(f.time),
        long(readingsOf(f, condition)),
        f.matched ? "is met" : "is not met",
        f.state ? state(f.state) : "none",
        reasonOf(f)
      ]),
      "The device has no frames for this rule.",
      { compact: true }
    ),
    ...frames
      .filter((f) => f.requests.length)
      .flatMap((f) => [h("h3", null, "For the frame of ", stamp(f.time), " UTC"), ...f.requests.map(request)])
  ];
}

const devices = async (account) =>
  (await all("listDevicesOfAccounts", { query: { account } })).map((d) => [d.id, d.name || d.identifier]);
const rules = async (account) =>
  (await all("listRulesOfAccount", { query: { account } })).map((r) => [r.id, r.name || r.id]);

export const show = asking({
  view: "tryrule",
  title: "Try a rule",
  intro: "Test a rule on a device's last frames. Nothing is saved or sent.",
  go: "Try",
  fields: (p) => [
    pick("account", "Account", accountNames, p.account, { required: true }),
    pick("device_id", "Device", () => devices(p.account), p.device_id, { required: true }),
    field("last", "Last frames", "number", p.last || "10"),
    pick("rule_id", "Rule", () => rules(p.account), p.rule_id, { blank: "The one below" }),
    field("rule", "Or a rule as JSON", "area", p.rule)
  ],
  ready: (p) => p.account && p.device_id && (p.rule_id || p.rule),
  ask: async (v, signal) => {
    const body = trialOf(v),
      found = (await call("tryRule", { as: v.account, body, signal })).data;
    await loadRules(signal).catch(() => {});
    const condition = body.rule ? body.rule.when || "" : conditionOf({ account: v.account, rule_id: v.rule_id });
    return triedRules(found, condition);
  }
});
