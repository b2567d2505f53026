// What several views show of alarms, and what they do with them.

import { call } from "../core/api.js";
import { button } from "../core/dom.js";
import { during } from "../core/form.js";
import { mayChange } from "../core/session.js";

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
