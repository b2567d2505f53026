// Mutes: for a while, alarms of a rule or a device run no actions.

import { call } from "../core/api.js";
import { editIn, field } from "../core/form.js";

const durations = [
  ["1h", "1 hour"],
  ["8h", "8 hours"],
  ["24h", "1 day"],
  ["168h", "1 week"]
];

// muteIn asks for the scope and duration of a mute and calls done(text). target has account, rule_id
// and rule_name, or device_id and device_name, or both.
export function muteIn(target, done) {
  const rule = target.rule_id && ["rule", "This rule, all devices"];
  const device = target.device_id && ["device", "All rules, this device"];
  const both = rule && device && ["both", "This rule, this device"];
  editIn(
    "Mute alarms",
    {
      go: "Mute",
      intro:
        [rule && "Rule: " + target.rule_name, device && "device: " + target.device_name].filter(Boolean).join(", ") +
        ". Muted alarms are raised and listed, but send nothing.",
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

// unmute ends all mutes of an alarm.
export async function unmute(a) {
  const scopes = [{ rule_id: a.rule_id, device_id: a.device_id }, { rule_id: a.rule_id }, { device_id: a.device_id }];
  for (const query of scopes) await call("unmuteAlarms", { query, as: String(a.account), accept: [404] });
}
