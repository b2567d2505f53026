// Mutes: alarms of a rule or a device that run no actions for a while.

import { call } from "../core/api.js";
import { editIn, field } from "../core/form.js";

const durations = [
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["24h", "1 day"],
  ["168h", "1 week"]
];

// muteIn asks what to mute and for how long; done(text) follows. target has account, rule_id
// and rule_name, or device_id and device_name, or both.
export function muteIn(target, done) {
  const rule = target.rule_id && ["rule", "the rule " + target.rule_name + " for all devices"];
  const device = target.device_id && ["device", "all rules for " + target.device_name];
  const both = rule && device && ["both", "the rule " + target.rule_name + " for " + target.device_name];
  editIn(
    "Mute alarms",
    {
      go: "Mute",
      intro: "Alarms are still raised and listed, but send nothing.",
      aliases: { for: "duration" },
      fields: [
        field("scope", "Mute", [both, rule, device].filter(Boolean), ""),
        field("duration", "For", durations, "1h")
      ],
      save: (v) => {
        const body = { for: v.duration };
        if (v.scope !== "device") body.rule_id = target.rule_id;
        if (v.scope !== "rule") body.device_id = target.device_id;
        return call("muteAlarms", { body, as: String(target.account) });
      }
    },
    ({ data }) => done("Muted until " + data.until.replace("T", " ").replace(/(\.\d+)?Z$/, "") + " UTC.")
  );
}

// unmute ends the mutes that keep an alarm's actions back.
export async function unmute(a) {
  const scopes = [{ rule_id: a.rule_id, device_id: a.device_id }, { rule_id: a.rule_id }, { device_id: a.device_id }];
  for (const query of scopes) await call("unmuteAlarms", { query, as: String(a.account), accept: [404] });
}
