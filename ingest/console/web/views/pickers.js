// Records of an account to pick from by name: [[id, name]].

import { all, call } from "../core/api.js";
import { plural } from "../core/format.js";
import { may } from "../core/session.js";

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

// records returns the records of all accounts that an operation lists: get(account, id) returns one that
// load has loaded, which it does again after half a minute.
export function records(op) {
  const known = new Map();
  let loadedAt = 0;
  const load = async (signal) => {
    if (Date.now() - loadedAt < 30_000 || !may(op)) return;
    for (const x of await all(op, { signal })) known.set(x.account + "/" + x.id, x);
    loadedAt = Date.now();
  };
  return { load, get: (acct, id) => known.get(acct + "/" + id) };
}

const decoders = records("listDecodersOfAccounts");
export const loadDecoders = decoders.load;
export const decoderName = (acct, id) => (decoders.get(acct, id) || {}).name || id;

// scopeText describes the devices of a rule.
export const scopeText = (r) =>
  Object.entries(r.devices)
    .map(([name, value]) => {
      if (name === "ids") return plural(value.length, "device");
      return name.replace("_id", "") + " " + (name === "decoder_id" ? decoderName(r.account, value) : value);
    })
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
