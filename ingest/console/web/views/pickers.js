// Records of an account to pick from by name: [[id, name]].

import { accounts } from "../core/accounts.js";
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
  const owner = declared.find((a) => String(a.id) === String(acct)) || {};
  return (owner.locations || []).map((l) => [l.id, l.name || l.id]);
}

// addLocation declares the location that takes an account's new devices, and returns its id.
export async function addLocation(acct) {
  const owner = (await accounts()).find((a) => String(a.id) === String(acct));
  const locations = [{ id: "default", name: "Default", imported: true }];
  await call("putInventory", { body: { document: "console", accounts: [{ name: owner.name, locations }] } });
  return "default";
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

// addSensorType declares what a sensor measures, and returns its id.
export async function addSensorType({ name, units }) {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "");
  const known = ((await call("getInventory")).sensor_types || []).some((t) => t.id === id);
  const type = { id, name, metric_units: units, imperial_units: units };
  if (!known) await call("putInventory", { body: { document: "console", sensor_types: [type] } });
  return id;
}
