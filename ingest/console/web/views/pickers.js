// Records of an account to pick from by name: [[id, name]].

import { all, call } from "../core/api.js";

export const decodersOf = async (acct) =>
  (acct ? await all("listDecodersOfAccounts", { query: { account: acct } }) : []).map((d) => [d.id, d.name || d.id]);

export const devicesOf = async (acct) =>
  (acct ? await all("listDevicesOfAccounts", { query: { account: acct } }) : []).map((d) => [
    d.id,
    d.name || d.identifier
  ]);

export async function locationsOf(acct) {
  const declared = (await call("getInventory")).accounts || [];
  return ((declared.find((a) => String(a.id) === String(acct)) || {}).locations || []).map((l) => [
    l.id,
    l.name || l.id
  ]);
}

export const subscribersOf = async (acct) =>
  (await call("listSubscribers", { query: { per_page: 500 }, as: acct })).data.map((s) => [
    s.id,
    [s.forename, s.surname].filter(Boolean).join(" ") || s.company_name || s.id
  ]);

// sensorTypes are those of the gateway, with their units.
export const sensorTypes = async () =>
  ((await call("getInventory")).sensor_types || []).map((t) => [
    t.id,
    t.name + (t.metric_units ? " (" + t.metric_units + ")" : "")
  ]);
