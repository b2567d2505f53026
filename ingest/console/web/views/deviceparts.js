// Parts of devices that several views show.

import { link } from "../core/address.js";
import { h, state, when } from "../core/dom.js";
import { capital, signed } from "../core/format.js";

const silentAfter = 24 * 3600e3;
const lowBattery = 15; // percent

export const seen = (at) => when(at) || "Never";
export const heard = (d) => (d.last_seen_at ? ["heard ", when(d.last_seen_at)] : "never heard");
export const deviceName = (d) => d.name || d.identifier;
export const deviceLink = (d) => link("devices", { id: d.id, account: String(d.account) }, deviceName(d));
export const isOld = (at) => Date.now() - Date.parse(at) > silentAfter;
// isOfLastFrame reports whether the newest value of a sensor came with the last frame of its device.
export const isOfLastFrame = (s, d) => Math.abs(Date.parse(s.at) - Date.parse(d.last_seen_at)) < 60e3;
export const isSilent = (d) => !d.last_seen_at || isOld(d.last_seen_at);

// deviceState shows whether a device is heard, and its problems.
export const deviceState = (d) => [
  state(isSilent(d) ? "silent" : "online"),
  d.alarms > 0 && [
    " ",
    link(
      "alarms",
      { account: String(d.account), device_id: d.id, state: "raised" },
      state("raised", d.alarms === 1 ? "alarm" : d.alarms + " alarms")
    )
  ],
  isLow(d.radio) && [" ", state("battery low")],
  !d.decoder_id && [" ", state("no decoder")]
];

// keyName is the name of a key without its sensor: "Temperature", "Battery level". One with other characters than
// lower-case letters stays as it is.
export const keyName = (key) => (/^[a-z_]+$/.test(key) ? capital(key.replaceAll("_", " ")) : key);

// typed is the key of a sensor with its type: "door (State)".
export const typed = (s) => s.key + (s.type_name && s.type_name !== s.key ? " (" + s.type_name + ")" : "");

// sensorName is the name of a sensor among the sensors of its device. A sensor that a decoder created has its
// key as its name; its sensor type says more, unless another sensor has the type too.
export function sensorName(s, sensors) {
  if (s.name && s.name !== s.key) return s.name;
  return sensors.some((x) => x.key !== s.key && x.type_name === s.type_name) ? typed(s) : s.type_name || s.key;
}

// measured shows a value with its unit, which stay on one line.
export const measured = (value, units) => h("span", { class: "nowrap" }, value + (units ? " " + units : ""));

// valueOf is the value of a reading, a number or a text.
export const valueOf = (v) => (v.text === undefined ? String(v.value) : v.text);

// readingText describes a reading by the sensor with its key: "Temperature 31 °C".
export function readingText(r, sensors) {
  const s = sensors.find((x) => x.key === r.key);
  if (!s) return keyName(r.key) + " " + valueOf(r);
  return sensorName(s, sensors) + " " + valueOf(r) + (s.metric_units ? "\u00a0" + s.metric_units : "");
}

const isLow = (r) => r && r.battery !== null && r.battery <= lowBattery;

// battery and strength describe the last uplinks; "" if they report nothing.
export const battery = (r) => (r && r.battery !== null ? Math.round(r.battery) + " %" : "");
export const strength = (r) =>
  r && r.rssi !== null
    ? [
        h("div", null, measured(signed(r.rssi), "dBm")),
        r.snr !== null && h("div", null, measured("SNR " + signed(r.snr), "dB"))
      ]
    : "";

export const deviceTypes = [
  ["lorawan", "LoRaWAN"],
  ["bluetooth", "Bluetooth"],
  ["other", "Other"]
];
export const typeName = (type) => (deviceTypes.find(([word]) => word === type) || [type, capital(type)])[1];

export const codecs = [
  ["json", "Decoded by the network"],
  ["cayenne_lpp", "Cayenne LPP"],
  ["senml", "SenML"],
  ["expr", "Expressions"],
  ["javascript", "JavaScript"]
];
export const codecWord = (codec) => (codecs.find(([name]) => name === codec) || [codec, codec])[1];
