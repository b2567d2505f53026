// The page of a device: newest values, charts, frames, markers and alarms. Each part
// loads by itself.

import { call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { button, code, h, long, pairs, pre, stamp, state, table } from "../core/dom.js";
import { field, valuesOf } from "../core/form.js";
import { cut, json } from "../core/format.js";
import { go, link } from "../core/router.js";
import { section } from "../core/section.js";
import { accountOf, battery, seen, signal as strength } from "./devices.js";
import { valueOf } from "./try.js";

const spans = { hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400 };
const iso = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";

// rangeOf is what the address names: a span that ends now, or its own times.
function rangeOf(params) {
  if (params.from && params.to) return { from: params.from, to: params.to };
  const to = Date.now();
  return { from: iso(to - (spans[params.span] || spans.day) * 1000), to: iso(to) };
}

const number = (v) => (v === null ? "" : String(Math.round(v * 1000) / 1000));

function about(d) {
  return [d.missing.map((m) => h("p", { class: "note" }, "Not shown, " + m)), pairs([["Identifier", code(d.identifier)], ["Account", accountOf(d)], ["Type", d.type], ["Last heard", [seen(d.last_seen_at), d.last_seen_at && [" (", stamp(d.last_seen_at), " UTC)"]]],
    ["Battery", battery(d.radio)], ["Signal", strength(d.radio)], ["Received by", d.radio && d.radio.gateways !== null && d.radio.gateways + " LoRaWAN gateways"],
    ["Position", d.position && d.position.latitude + ", " + d.position.longitude + (d.position.source === "network" ? " (from its network)" : "")],
    ["Alarms", d.alarms > 0 && link("alarms", { account: String(d.account), device_id: d.id, state: "raised" }, d.alarms + " raised")],
    ["Decoder", d.decoder_id ? link("decoders", { id: d.decoder_id, account: String(d.account), device: d.id }, d.decoder_name || d.decoder_id) : "none: its payloads are not decoded"],
    ["Comment", d.comment], ["Id", code(d.id)], ["Created", stamp(d.created_at)]])];
}

function newest(d) {
  const rows = d.sensors.map((s) => [s.name || s.key, s.at ? (s.value === null ? long(s.text) : number(s.value) + " " + s.metric_units) : h("span", { class: "hint" }, "no reading yet"), seen(s.at), s.type_name || s.sensor_type_id, code(s.key)]);
  return table("Newest values", ["Sensor", "Value", "Measured", "Measures", "Key"], rows, "The device has no sensors: its decoder maps no keys, or it has none. The decoder's page shows what its frames decode to.");
}

// drawn makes a chart of each sensor. A gap is left where a stretch has no readings.
function drawn(found, params, signal, charts) {
  charts.splice(0).forEach((one) => one.end());
  const from = Date.parse(found.meta.from) / 1000, to = Date.parse(found.meta.to) / 1000;
  const ranged = (a, b) => go("devices", { id: params.id, account: params.account, from: iso(a * 1000), to: iso(b * 1000) });
  const out = found.data.map((s) => {
    const times = s.buckets.map((b) => Date.parse(b.at) / 1000);
    const lines = [{ label: "mean", values: s.buckets.map((b) => b.mean) }, { label: "min", values: s.buckets.map((b) => b.min) }, { label: "max", values: s.buckets.map((b) => b.max) }];
    const made = chart((s.name || s.key) + " over time: minimum, mean and maximum", times, lines, { signal, unit: s.metric_units && " " + s.metric_units, from, to, ranged });
    charts.push(made);
    return h("div", { class: "sheet" }, h("h3", null, s.name ? s.name + " " : "", code(s.key), s.metric_units && " in " + s.metric_units), made);
  });
  if (!out.length) return h("p", { class: "empty" }, "No numbers were stored in this range. Choose a longer one, or see below whether frames arrived that could not be decoded.");
  return [h("p", { class: "hint" }, "Minimum, mean and maximum of each " + found.meta.granularity.replace(/_/g, " ") + ", in UTC. Drag across a chart to look closer."), out];
}

function rangeForm(params) {
  const here = { id: params.id, account: params.account };
  const now = params.from ? "" : params.span || "day";
  const buttons = Object.keys(spans).map((name) => button("Last " + name, () => go("devices", { ...here, span: name }), { class: name === now ? "main" : false, "aria-pressed": String(name === now) }));
  const range = rangeOf(params);
  const own = h("form", { class: "fields", "aria-label": "Own range", submit: (e) => { e.preventDefault(); go("devices", { ...here, ...valuesOf(e.target) }); } },
    field("from", "From (UTC)", "time", range.from, { required: true }), field("to", "To (UTC)", "time", range.to, { required: true }), h("p", { class: "bar" }, h("button", { type: "submit" }, "Show this range")));
  return h("div", null, h("p", { class: "bar" }, buttons), h("details", { open: Boolean(params.from) }, h("summary", null, "Own range"), own));
}

function frames(found) {
  const rows = found.map((f) => [stamp(f.received_at), f.kind, f.f_port, f.f_cnt, f.encrypted ? "encrypted" : code(f.payload), f.object || f.samples ? h("details", null, h("summary", null, "values"), pre(json(f.object || f.samples))) : "",
    f.rssi !== null && f.rssi + " dBm" + (f.snr === null ? "" : ", SNR " + f.snr), f.refused ? [state("refused"), " ", f.refused] : f.note || "stored", link("trace", { id: f.event }, "trace")]);
  return table("Raw frames", ["Received (UTC)", "Kind", "fPort#", "fCnt#", "Payload (hex)", "Decoded by the network", "Signal", "Result", "Event"], rows,
    "No raw frame is kept. Frames are kept for 7 days once frame logging is on: PATCH /iot/devices/{device_id} with {\"frame_logging\":\"enabled\"}.");
}

// recent are the last events that brought frames, as the decoder reads them now.
function recent(found) {
  const rows = found.map((f) => [stamp(f.time), f.event && link("trace", { id: f.event }, f.event), f.sender, code(cut(f.payload, 60)),
    f.errors.length ? [state("fails"), " ", f.errors[0].message] : f.refused ? [state("refused"), " ", f.refused] : f.readings.map((r) => h("div", null, r.key + " " + valueOf(r)))]);
  return table("Events", ["Time (UTC)", "Event", "Sender", "Payload (hex)", "Decodes now to"], rows, "No frame of this device is in the journal of this gateway any more. The next one will be here.");
}

const alarms = (found) => table("Alarms", ["Raised (UTC)", "Rule", "State", "Cleared (UTC)", "Acknowledged by", "Note"],
  found.map((a) => [stamp(a.raised_at), link("alarms", { account: String(a.account), device_id: a.device_id, rule_id: a.rule_id, open: a.id }, a.rule_id), state(a.state), stamp(a.cleared_at), a.acknowledged_by, a.note]), "No alarm was raised for this device.");

export async function showDevice(main, params, signal) {
  const path = { device_id: params.id }, query = { account: params.account }, charts = [];
  main.append(h("p", null, link("devices", {}, "← All devices")));
  const title = h("h1", null, params.id);
  const load = async () => {
    const { data } = await call("showDevice", { path, query, signal });
    title.replaceChildren(data.name || data.identifier);
    return data;
  };
  const readings = section("Readings over time", async () => drawn(await call("aggregateDeviceOfAccount", { path, query: { ...query, ...rangeOf(params) }, signal }), params, signal, charts), { signal, every: params.from ? 0 : 30000 });
  readings.insertBefore(rangeForm(params), readings.children[1]);
  let device = null;
  const first = section("About", async () => { device = load(); return about(await device); }, { signal, every: 10000 });
  main.append(title, first,
    section("Newest values", async () => newest(await (device || load())), { signal, every: 10000 }), readings,
    section("Alarms", async () => alarms((await call("listAlarmsOfAccount", { query: { account: params.account, device_id: params.id, limit: 20 }, signal })).data), { signal, every: 15000 }),
    section("Event markers", async () => table("Event markers", ["At (UTC)", "Comment", "Id"], (await call("listMarkersOfDevice", { path, query, signal })).data.map((m) => [stamp(m.at), long(m.comment), code(m.id)]),
      "Nobody noted anything. POST /iot/devices/{device_id}/event-markers adds a dated comment, such as a change of its battery."), { signal }),
    section("Events", async () => recent((await call("tryDecoder", { body: { account: params.account, device_id: params.id, last: 20 }, signal })).data), { signal, hint: "The last frames in the journal of this gateway, decoded as the decoder is now. Nothing is stored by looking." }),
    section("Raw frames", async () => frames((await call("listFramesOfDevice", { path, query, signal })).data), { signal }));
}
