// Devices: all that were heard or added, the longest silent first, and where they are. One
// device has a page of its own, device.js.

import { account, accountNames } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, when } from "../core/dom.js";
import { editIn, field, pick } from "../core/form.js";
import { number, plural } from "../core/format.js";
import { listing } from "../core/list.js";
import { places } from "../core/plot.js";
import { mayChange, ownAccount } from "../core/session.js";
import { showDevice } from "./device.js";
import {
  battery,
  deviceLink,
  deviceName,
  deviceState,
  deviceTypes,
  isOfLastFrame,
  isOld,
  isSilent,
  measured,
  seen,
  sensorName,
  strength,
  typeName
} from "./deviceparts.js";
import { addLocation, decoderName, decodersOf, loadDecoders, locationsOf } from "./pickers.js";

const shownValues = 2; // of a row

const isBattery = (s) => /^battery|^vbat/i.test(s.key);

// lastValue shows the newest value of a sensor, with its age if the value is older than a day and than the last frame.
function lastValue([s, name, d]) {
  const value = s.value === null ? s.text : measured(number(s.value), s.metric_units);
  if (!isOld(s.at)) return h("div", null, name + " ", value);
  return h("div", { class: "soft" }, name + " ", value, !isOfLastFrame(s, d) && [", ", when(s.at)]);
}

// values asks for the newest values of the devices of a page, one device at a time, and
// writes them into their places.
function values(signal) {
  const known = new Map(),
    waiting = [];
  let busy = false;
  const work = async () => {
    if (busy) return;
    busy = true;
    for (let next; (next = waiting.shift()) && !signal.aborted;) {
      const [d, place] = next;
      if (!place.isConnected) continue;
      try {
        const { data } = await call("showDevice", {
          path: { device_id: d.id },
          query: { account: String(d.account) },
          signal
        });
        known.set(
          d.id,
          data.sensors
            .filter((s) => s.at)
            .sort((a, b) => isBattery(a) - isBattery(b))
            .slice(0, shownValues)
            .map((s) => [s, sensorName(s, data.sensors), data])
        );
        place.replaceChildren(...known.get(d.id).map(lastValue));
      } catch (error) {
        if (error.name === "AbortError") break;
        place.replaceChildren();
      }
    }
    busy = false;
  };
  return (d) => {
    const place = h(
      "div",
      { class: "values" },
      (known.get(d.id) || []).map(lastValue)
    );
    waiting.push([d, place]);
    setTimeout(work);
    return place;
  };
}

// identifierOf says what identifies a device of a type, and how it is created.
const identifierOf = {
  lorawan: ["Device EUI", "identifier", "createLorawanDevice", "16 hexadecimal digits, as on the label."],
  bluetooth: ["MAC address", "mac_address", "createBluetoothDevice", "12 hexadecimal digits."],
  other: ["Identifier", "identifier", "createOtherDevice", "The name that the device has in its frames."]
};

// locationsOrDefault are the locations of an account, or one that is created with the device.
async function locationsOrDefault(acct) {
  const known = await locationsOf(acct);
  return known.length ? known : [["", "Default (new)"]];
}

// addDevice asks for a new device and opens its page.
export function addDevice(presets = {}) {
  const decoder = h("div"),
    location = h("div");
  const follow = (acct) => {
    decoder.replaceChildren(
      pick("decoder_id", "Decoder", () => decodersOf(acct), presets.decoder, {
        required: true,
        blank: "This account has no decoder yet"
      })
    );
    location.replaceChildren(pick("location_id", "Location", () => locationsOrDefault(acct), "", { only: true }));
  };
  const type = field("type", "Type", deviceTypes, presets.type || "lorawan");
  const identifier = field("identifier", "Device EUI", "text", presets.identifier, {
    required: true,
    hint: identifierOf.lorawan[3]
  });
  const rename = () => {
    const [label, , , hint] = identifierOf[type.querySelector("select").value];
    identifier.querySelector("label").textContent = label;
    identifier.querySelector(".hint").textContent = hint;
  };
  type.addEventListener("change", rename);
  rename();
  if (ownAccount()) follow(ownAccount());
  editIn(
    "Add device",
    {
      go: "Add device",
      aliases: { mac_address: "identifier" },
      fields: [
        !ownAccount() &&
          pick("account", "Account", accountNames, presets.account, { required: true, changed: follow }),
        type,
        identifier,
        field("name", "Name", "text", presets.name, { required: true }),
        decoder,
        location
      ],
      save: async (v) => {
        const [, key, op] = identifierOf[v.type],
          acct = ownAccount() || v.account;
        const [[known]] = v.location_id ? [[v.location_id]] : await locationsOrDefault(acct);
        const place = known || (await addLocation(acct));
        const body = { [key]: v.identifier, name: v.name, decoder_id: v.decoder_id, location_id: place };
        return { acct, data: (await call(op, { body, as: acct })).data };
      }
    },
    ({ acct, data }) => go("devices", { id: data.id || data.device_id, account: String(acct) })
  );
}

// map draws the devices that have a known position, unfolded unless open is false.
function map(found, open) {
  const placed = found.filter((d) => d.position);
  if (!placed.length) return "";
  const heard = (d) => (d.last_seen_at ? "heard " + seen(d.last_seen_at).textContent : "never heard");
  const points = placed.map((d) => ({
    ...d.position,
    name: deviceName(d) + " · " + heard(d),
    warn: d.alarms > 0 || isSilent(d),
    href: deviceLink(d).getAttribute("href")
  }));
  return h(
    "details",
    { open },
    h("summary", null, "Map (" + plural(placed.length, "device") + " with a position)"),
    h(
      "p",
      { class: "hint" },
      "A triangle is a device that is silent or has a raised alarm. North is up."
    ),
    places(points)
  );
}

function list(main, params, signal) {
  const place = h("div"),
    valueCell = values(signal);
  const show = listing({
    view: "devices",
    op: "listDevicesOfAccounts",
    title: "Devices",
    sorted: "Last heard",
    intro: "A device is silent if it was not heard for 24 hours.",
    filters: { heard: ["silent"] },
    adapt: (query) => ({ order: "silent", ...query }),
    load: async ({ heard: silentOnly, ...query }, stop) => {
      await loadDecoders(stop).catch(() => {});
      if (silentOnly) query.order = "silent"; // the silent devices come first
      const found = await call("listDevicesOfAccounts", { query, signal: stop });
      if (silentOnly && !found.data.every(isSilent)) {
        found.data = found.data.filter(isSilent);
        found.meta.next = "";
      }
      const old = place.querySelector("details");
      place.replaceChildren(...[map(found.data, !old || old.open)].filter(Boolean));
      if (found.meta.missing)
        place.prepend(h("p", { class: "note" }, "Battery and signal are missing: " + found.meta.missing));
      return found;
    },
    add: () => mayChange() && button("Add device", () => addDevice({ account: params.account }), { class: "main" }),
    empty: (filter) =>
      Object.keys(filter).length
        ? "No devices match the filters."
        : [
            h("p", null, "No devices yet. A device appears with its first frame, or when you add it."),
            h("p", { class: "bar" }, mayChange() && button("Add device", () => addDevice(), { class: "main" }))
          ],
    columns: [
      {
        head: "Device",
        value: deviceName,
        cell: (d) => [deviceLink(d), d.name && d.name !== d.identifier && h("div", { class: "hint" }, d.identifier)]
      },
      {
        head: "State",
        value: (d) => (d.alarms > 0 ? "alarm" : isSilent(d) ? "silent" : "online"),
        cell: deviceState
      },
      { head: "Last heard", value: (d) => d.last_seen_at || "", cell: (d) => seen(d.last_seen_at) },
      { head: "Last values", cell: valueCell },
      { head: "Account", value: (d) => d.account_name, cell: (d) => account(d.account), rest: true },
      { head: "Type", value: (d) => d.type, cell: (d) => typeName(d.type), rest: true },
      {
        head: "Battery",
        value: (d) => (d.radio ? d.radio.battery : null),
        cell: (d) => battery(d.radio),
        number: true,
        rest: true
      },
      { head: "Signal", value: (d) => (d.radio ? d.radio.rssi : null), cell: (d) => strength(d.radio), rest: true },
      {
        head: "Decoder",
        value: (d) => decoderName(d.account, d.decoder_id),
        rest: true,
        cell: (d) =>
          d.decoder_id &&
          link("decoders", { id: d.decoder_id, account: String(d.account) }, decoderName(d.account, d.decoder_id))
      }
    ]
  });
  const shown = show(main, params, signal);
  main.append(place);
  return shown;
}

export function show(main, params, signal) {
  return params.id ? showDevice(main, params, signal) : list(main, params, signal);
}
