// Records of an account to pick from by name: [[id, name]].

import { all, call } from "../core/api.js";

export const decodersOf = async (acct) =>
  (acct ? await all("listDecodersOfAccounts", { query: { account: acct } }) : []).map((d) => [d.id, d.name || d.id]);

export const devicesOf = async (acct) =>
  (acct ? await all("listDevicesOfAccounts", { query: { account: acct } }) : []).map((d) => [
    d.id,
    d.name || d.identifier
  ]);

export const locationsOf = async (acct) =>
  (acct ? (await call("listLocations", { as: acct })).data : []).map((l) => [l.id, l.name || l.id]);

// addLocation creates the location that takes an account's new devices, and returns its id.
export const addLocation = async (acct) =>
  (await call("createLocation", { body: { name: "Default", imported: true }, as: acct })).data.id;

// scopeText describes the devices of a rule.
export const scopeText = (devices) =>
  Object.entries(devices)
    .map(([name, value]) => (name === "ids" ? value.length + " chosen" : name.replace("_id", "") + " " + value))
    .join(", ") || "all";

export const subscribersOf = async (acct) =>
  (await call("listSubscribers", { query: { per_page: 500 }, as: acct })).data.map((s) => [
    s.id,
    [s.forename, s.surname].filter(Boolean).join(" ") || s.company_name || s.id
  ]);

// sensorTypes lists the sensor types of the gateway with their units.
export const sensorTypes = async () =>
  (await call("listSensorTypes")).data.map((t) => [
    t.id,
    t.name + (t.metric_units ? " (" + t.metric_units + ")" : "")
  ]);

// addSensorType adds what a sensor measures, unless it exists, and returns its id.
export async function addSensorType({ name, units }) {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "");
  const type = { id, name, metric_units: units, imperial_units: units };
  await call("addSensorType", { body: type, accept: [409] });
  return id;
}
