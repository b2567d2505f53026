// Relays by the number or prefix whose messages they take.

import { all } from "../core/api.js";
import { may } from "../core/session.js";
import { ruleName } from "./alarmparts.js";

let known = [],
  loadedAt = 0;

// loadRelays loads the relays of all accounts, at most each half minute. A relay that is not loaded is shown as its id.
export async function loadRelays(signal) {
  if (Date.now() - loadedAt < 30_000 || !may("listRelaysOfAccounts")) return;
  known = await all("listRelaysOfAccounts", { signal });
  loadedAt = Date.now();
}

// relayNumber is the number of a relay, or its prefix with an asterisk.
export const relayNumber = (r) => r.number + (r.kind === "geo" ? "*" : "");

// relayName names a relay by its account, id and kind; without a kind by the destination of a message, because a
// relay of a number and one of a prefix may have the same id. If both are possible, it returns the id.
export function relayName({ account, id, kind, destination }) {
  const sameID = known.filter((r) => r.account === account && String(r.id) === id && (!kind || r.kind === kind));
  const takes = (r) => (r.kind === "geo" ? (destination || "").startsWith(r.number) : r.number === destination);
  const relay = sameID.find(takes) || (sameID.length === 1 && sameID[0]);
  return relay ? relayNumber(relay) : id;
}

// relayOf names the relay of a delivery.
export const relayOf = (d) => relayName({ account: d.account, id: d.relay, destination: d.destination });

// senderName names the rule or the relay of a delivery.
export const senderName = (d) =>
  d.kind === "rule" ? ruleName({ account: d.account, rule_id: d.relay }) : relayOf(d);
