// Devices: all that were heard or declared, the silent ones first, and where they
// are. One device has a page of its own, device.js.

import { call } from "../core/api.js";
import { button, code, h, redraw, reading, stamp, state, table, told, wrong } from "../core/dom.js";
import { field, valuesOf } from "../core/form.js";
import { plural } from "../core/format.js";
import { poll } from "../core/live.js";
import { places } from "../core/plot.js";
import { go, link } from "../core/router.js";
import { ownAccount } from "../core/session.js";
import { showDevice } from "./device.js";

const pageSize = 100;
const silentAfter = 24 * 3600e3;

// ago is how long a time is past, in words.
export function ago(at) {
  const s = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  if (s < 90) return Math.round(s) + " s ago";
  if (s < 5400) return Math.round(s / 60) + " min ago";
  return s < 129600 ? Math.round(s / 3600) + " h ago" : Math.round(s / 86400) + " days ago";
}

export const seen = (at) => (at ? h("time", { datetime: at, title: at }, ago(at)) : "never");
export const accountOf = (x) => (x.account_name ? x.account_name + " (" + x.account + ")" : String(x.account));
export const deviceLink = (d) => link("devices", { id: d.id, account: String(d.account) }, d.name || d.identifier);
const silent = (d) => !d.last_seen_at || Date.now() - Date.parse(d.last_seen_at) > silentAfter;

// battery and signal are what the last uplinks say, "" for nothing.
export const battery = (r) => r && r.battery !== null && Math.round(r.battery) + " %";
export const signal = (r) => r && r.rssi !== null && [r.rssi + " dBm", r.snr !== null && "SNR " + r.snr + " dB"].filter(Boolean).join(", ");

function filterForm(params) {
  const submit = (e) => { e.preventDefault(); go("devices", valuesOf(e.target)); };
  const select = (name, text, words, value) => {
    const made = field(name, text, words.map(([word]) => word), value);
    made.querySelectorAll("option").forEach((option, i) => { option.textContent = words[i][1]; });
    return made;
  };
  return h("form", { class: "fields sheet", submit, "aria-label": "Filters" },
    field("q", ownAccount() ? "Search (identifier, name)" : "Search (identifier, name, account)", "text", params.q), !ownAccount() && field("account", "Account (name or id)", "text", params.account),
    select("alarmed", "Alarms", [["", "with and without"], ["true", "raised only"]], params.alarmed),
    select("order", "Order", [["silent", "silent longest first"], ["account", "account, then creation"]], params.order || "silent"),
    field("decoder", "Decoder (its id)", "text", params.decoder),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Show"), " ", link("devices", {}, "Clear")));
}

const row = (d) => [[h("div", null, deviceLink(d)), d.name && d.name !== d.identifier && h("div", { class: "hint" }, d.identifier)], accountOf(d),
  [seen(d.last_seen_at), silent(d) && [" ", state("silent")]], battery(d.radio), signal(d.radio),
  d.alarms > 0 && link("alarms", { account: String(d.account), device_id: d.id, state: "raised" }, plural(d.alarms, "alarm") + " raised"),
  d.decoder_id && link("decoders", { id: d.decoder_id, account: String(d.account) }, d.decoder_id)];

function plot(found) {
  const placed = found.filter((d) => d.position);
  if (!placed.length) return h("p", { class: "hint" }, "None of these devices has a known position. PATCH /iot/devices/{device_id} sets longitude and latitude; some networks report them.");
  const points = placed.map((d) => ({ ...d.position, name: (d.name || d.identifier) + " · heard " + (d.last_seen_at ? ago(d.last_seen_at) : "never"), warn: d.alarms > 0 || silent(d), href: deviceLink(d).getAttribute("href") }));
  return [h("p", { class: "hint" }, plural(placed.length, "device") + " of this page with a known position. A triangle is a device with a raised alarm, or not heard for a day. The plot has no map: north is up."), places(points)];
}

const none = (filtered) => (filtered ? "No device matches these filters." :
  [h("p", null, "There is no device yet. A device is made by its first frame: have a LoRaWAN network server, or any program, post to the gateway with a token that has the scope webhook:"),
    code("curl -H \"Authorization: Bearer TOKEN\" " + location.origin + "/webhooks/generic/my-device --json '{\"temperature\":21.5}'"),
    h("p", null, "The account needs an imported location (imported: true in the inventory) and a decoder for the values; docs/inventory.md shows both.")]);

function page(found, params) {
  const { id, cursor, ...filter } = params;
  const filtered = cursor || Object.keys(filter).some((name) => name !== "order");
  return [found.meta.missing && h("p", { class: "note" }, "Battery and signal are missing: " + found.meta.missing),
    found.data.length ? table("Devices", ["Device", "Account", "Last heard", "Battery", "Signal", "Alarms", "Decoder"], found.data.map(row), "") : h("div", { class: "empty" }, none(filtered)),
    h("p", { class: "bar" }, cursor && link("devices", filter, "First page"), found.meta.next && link("devices", { ...filter, cursor: found.meta.next }, "More devices")),
    found.data.length > 0 && [h("h2", null, "Where they are"), plot(found.data)]];
}

export async function show(main, params, signal) {
  if (params.id) return showDevice(main, params, signal);
  const body = h("div", null, h("p", { class: "hint" }, "Loading…")), said = told();
  const load = async () => {
    try {
      const found = await call("listDevicesOfAccounts", { query: { order: "silent", ...params, limit: pageSize }, signal });
      redraw(body, page(found, params));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(wrong(error));
    }
  };
  main.append(h("h1", null, "Devices"), h("p", { class: "intro" }, (ownAccount() ? "Every device of your account." : "Every device of every account.") + " Those that have been silent longest come first; a device that was not heard for a day is marked silent."),
    filterForm(params), h("p", { class: "bar" }, button("Refresh", load)), said, body);
  await poll(() => (reading(body) ? undefined : load()), { every: 15000, signal });
}
