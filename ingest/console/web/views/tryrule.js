// Test a rule on the last frames of a device.

import { call } from "../core/api.js";
import { h, long, stamp, state, table } from "../core/dom.js";
import { asking, field, pick } from "../core/form.js";
import { newestFirst, plural } from "../core/format.js";
import { conditionOf, loadRules, looksAt } from "./alarmparts.js";
import { keyName, valueOf } from "./deviceparts.js";
import { request } from "./explain.js";
import { named, ofAccount } from "./pickers.js";

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
const reasonOf = (f) => f.why.replace(/^the condition is (not )?met(; |$)/, "");

const maxReadings = 3; // of a frame

// readingsOf shows the readings of a frame that the condition compares; if it compares none, the first.
function readingsOf(f, condition) {
  const textOf = (v) => valueOf(v) + (v.units && "\u00a0" + v.units);
  const texts = Object.entries(f.readings).map(([key, v]) => [key, keyName(key) + " " + textOf(v)]);
  const compared = texts.filter(([key]) => looksAt(condition, key));
  return (compared.length ? compared : texts)
    .slice(0, maxReadings)
    .map(([, text]) => text)
    .join(", ");
}

// requestName says what a request is, and its target if that is not a URL.
function requestName(r) {
  if (r.mail) return "Email to " + r.mail.to;
  return r.sms ? "SMS to " + r.sms.to : "HTTP request";
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
        f.matched ? "Met" : "Not met",
        f.state ? state(f.state) : "None",
        reasonOf(f)
      ]),
      "The device has no frames for this rule.",
      { compact: true }
    ),
    ...frames
      .filter((f) => f.requests.length)
      .map((f) =>
        h(
          "details",
          null,
          h("summary", null, "Frame of ", stamp(f.time), " UTC: ", f.requests.map(requestName).join(", ")),
          f.requests.map(request)
        )
      )
  ];
}

// ofOne are the fields that depend on the account.
const ofOne = (acct, preset) => [
  pick("device_id", "Device", async () => (acct ? named("listDevicesOfAccounts", acct) : []), preset.device_id, {
    required: true,
    blank: "No device"
  }),
  pick("rule_id", "Rule", async () => (acct ? named("listRulesOfAccount", acct) : []), preset.rule_id, {
    blank: "The rule below"
  })
];

// summary counts the effects on frames: "10 frames: raised twice, cleared once."
function summary(found) {
  const counts = new Map();
  for (const f of found) if (f.state) counts.set(f.state, (counts.get(f.state) || 0) + 1);
  const effects = [...counts].map(([state, n]) => state + " " + (["once", "twice"][n - 1] || n + " times")).join(", ");
  return plural(found.length, "frame") + ": " + (effects || "no effect") + ".";
}

export const show = asking({
  view: "tryrule",
  title: "Test a rule",
  intro: "Test a rule on a device's last frames. Nothing is saved or sent.",
  go: "Test",
  fields: (p) => [
    ofAccount(p.account, (acct) => ofOne(acct, acct === p.account ? p : {}), { required: true }),
    field("last", "Number of last frames", "number", p.last || "10"),
    field("rule", "Or a rule as JSON", "area", p.rule)
  ],
  ready: (p) => p.account && p.device_id && (p.rule_id || p.rule),
  ask: async (v, signal) => {
    const body = trialOf(v),
      found = (await call("tryRule", { as: v.account, body, signal })).data;
    await loadRules(signal).catch(() => {});
    const condition = body.rule ? body.rule.when || "" : conditionOf({ account: v.account, rule_id: v.rule_id });
    return [found.length > 0 && h("p", { class: "said" }, summary(found)), ...triedRules(found, condition)];
  }
});
