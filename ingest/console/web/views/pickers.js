// Records of an account to pick from by name: [[id, name]].

import { accountNames } from "../core/accounts.js";
import { all, call } from "../core/api.js";
import { h } from "../core/dom.js";
import { pick } from "../core/form.js";
import { plural } from "../core/format.js";
import { may } from "../core/session.js";

// ofAccount is the choice of an account, and the fields that depend on it: those of fieldsOf(account), made
// again after each choice.
export function ofAccount(value, fieldsOf, props) {
  let drawn = value || "";
  const place = h("div", { class: "joined" }, fieldsOf(drawn));
  const changed = (acct) => {
    if (acct === drawn) return;
    drawn = acct;
    place.replaceChildren(...fieldsOf(acct));
  };
  return [pick("account", "Account", accountNames, value, { ...props, changed }), place];
}

// named returns the records of one or all accounts that an operation lists; of all accounts with the name of
// theirs.
export const named = async (op, acct) =>
  (await all(op, { query: { account: acct } })).map((x) => [
    x.id,
    (x.name || x.identifier || x.id) + (!acct && x.account_name ? " (" + x.account_name + ")" : "")
  ]);

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

// locationNames has the names of locations by account and id, as far as loadScopes has loaded them.
const locationNames = new Map();

// loadScopes loads the names of the decoders and locations in the scopes of rules; a name that is missing
// is shown as the id.
export async function loadScopes(rules, signal) {
  const isMissing = (r) => r.devices.location_id && !locationNames.has(r.account + "/" + r.devices.location_id);
  const accounts = new Set(rules.filter(isMissing).map((r) => String(r.account)));
  const load = async (acct) => {
    for (const [id, name] of await locationsOf(acct)) locationNames.set(acct + "/" + id, name);
  };
  await Promise.allSettled([loadDecoders(signal), ...[...accounts].map(load)]);
}

// scopeText describes the devices of a rule.
export const scopeText = (r) =>
  Object.entries(r.devices)
    .map(([name, value]) => {
      if (name === "ids") return plural(value.length, "device");
      if (name === "decoder_id") return "decoder " + decoderName(r.account, value);
      if (name === "location_id") return "location " + (locationNames.get(r.account + "/" + value) || value);
      return name + " " + value;
    })
    .join(", ") || "All devices";

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
