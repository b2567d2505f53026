// Parts of devices that several views show.

import { link } from "../core/address.js";
import { state, when } from "../core/dom.js";
import { capital } from "../core/format.js";

const silentAfter = 24 * 3600e3;
const lowBattery = 15; // percent

export const seen = (at) => when(at) || "never";
export const heard = (d) => (d.last_seen_at ? ["heard ", when(d.last_seen_at)] : "never heard");
export const deviceName = (d) => d.name || d.identifier;
export const deviceLink = (d) => link("devices", { id: d.id, account: String(d.account) }, deviceName(d));
export const isSilent = (d) => !d.last_seen_at || Date.now() - Date.parse(d.last_seen_at) > silentAfter;

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

// sensorName is the name of a sensor. A sensor that a decoder created has its key as its name; its
// sensor type says more.
export const sensorName = (s) => (s.name && s.name !== s.key ? s.name : s.type_name || s.key);

const isLow = (r) => r && r.battery !== null && r.battery <= lowBattery;

// battery and strength describe the last uplinks; "" if they report nothing.
export const battery = (r) => (r && r.battery !== null ? Math.round(r.battery) + " %" : "");
export const strength = (r) =>
  r && r.rssi !== null ? [r.rssi + " dBm", r.snr !== null && "SNR " + r.snr + " dB"].filter(Boolean).join(", ") : "";

export const deviceTypes = [
  ["lorawan", "LoRaWAN"],
  ["bluetooth", "Bluetooth"],
  ["other", "Other"]
];
export const typeName = (type) => (deviceTypes.find(([word]) => word === type) || [type, capital(type)])[1];

export const codecs = [
  ["json", "Values that the network decoded"],
  ["cayenne_lpp", "Cayenne LPP"],
  ["senml", "SenML"],
  ["expr", "Expressions"],
  ["javascript", "JavaScript"]
];
export const codecWord = (codec) => (codecs.find(([name]) => name === codec) || [codec, codec])[1];
