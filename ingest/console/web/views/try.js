// Try: a decoder on a payload or on the last frames of a device.

import { call } from "../core/api.js";
import { button, code, h, pairs, stamp, state, table } from "../core/dom.js";
import { asking, during, field, valuesOf } from "../core/form.js";
import { link } from "../core/router.js";

export const valueOf = (v) => (v.text === undefined ? String(v.value) : v.text);

export function tried(f) {
  const problems = f.errors.map((e) => e.message + (e.line ? " (line " + e.line + (e.column ? ", column " + e.column : "") + ")" : ""));
  const was = (r) => f.stored.find((s) => s.sensor_id === r.sensor_id && s.key === r.key && s.time === r.time);
  const readings = f.readings.map((r) => [r.key, valueOf(r), r.sensor_type_id, stamp(r.time), [state(r.effect), was(r) && " stored today: " + valueOf(was(r))]]);
  return h("div", { class: "sheet" }, pairs([["Device", f.identifier], ["Sender", f.sender], ["Time", stamp(f.time)], ["fPort", f.fPort], ["Payload", code(f.payload)], ["Took", f.took_us + " µs"], ["Event", f.event && link("trace", { id: f.event }, f.event)], ["Notes", f.notes.length > 0 && f.notes.map((n) => h("div", null, n))]]),
    problems.map((p) => h("p", { class: "wrong" }, p)), f.warnings.map((w) => h("p", { class: "note" }, w)), f.refused && h("p", { class: "note" }, "Nothing would be stored: " + f.refused),
    h("h3", null, "Values"), table("Values", ["Key", "Value", "Time (UTC)"], f.values.map((v) => [v.key, valueOf(v), v.time ? stamp(v.time) : "the frame's"]), "The decoder gave none."),
    h("h3", null, "What sensors would get"), table("Readings", ["Key", "Value", "Sensor type", "Time (UTC)", "Against today"], readings, "No sensor would get anything."));
}

// trialOf makes the request of the form.
function trialOf(v) {
  const body = {};
  for (const name of ["decoder_id", "device_id", "codec", "source"]) if (v[name]) body[name] = v[name];
  if (v.account) body.account = v.account;
  if (v.last) body.last = Number(v.last);
  if (!v.payload) return body;
  const frame = v.fPort ? { fPort: Number(v.fPort) } : {};
  frame[v.form] = v.payload;
  if (v.form === "values" || v.form === "body") {
    try { frame[v.form] = JSON.parse(v.payload); } catch (error) {
      if (v.form === "values") throw new Error("Values are a JSON object: " + error.message);
    }
  }
  return { ...body, frames: [frame] };
}

// loadSource fetches a stored decoder, so that its source can be tried changed.
const loadSource = (formOf, said, signal) => button("Load the decoder's source", (e) => during(e.target, said, async () => {
  const v = valuesOf(formOf());
  if (!v.decoder_id) return h("p", { class: "wrong", role: "alert" }, "Name a decoder first.");
  const d = await call("showDecoder", { path: { decoder_id: v.decoder_id }, query: { account: v.account }, signal });
  formOf().elements.codec.value = d.codec;
  formOf().elements.source.value = d.source;
  return d.name + ": " + d.codec + (d.source ? "; its source can be changed below." : ", which has no source.");
}));

export const show = asking({
  view: "try", title: "Try", intro: "A decoder on a payload. Nothing is stored. Name a stored decoder or a device, or give a codec and its source.", go: "Try", more: loadSource,
  fields: (p) => [field("decoder_id", "Decoder", "text", p.decoder_id), field("device_id", "or device", "text", p.device_id), field("account", "Account (if several have it)", "text", p.account),
    field("form", "Payload is", ["hex", "base64", "values", "body"], p.form), field("fPort", "fPort", "number", p.fPort), field("last", "or the device's last frames", "number", p.last),
    field("payload", "Payload (hex, base64, a JSON object of values, or a body as a sender posts it)", "area", p.payload),
    field("codec", "Codec", ["", "json", "cayenne_lpp", "senml", "expr", "javascript"], p.codec, { blank: "the stored one" }), field("source", "Source, in the place of the stored one", "area", p.source)],
  ready: (p) => p.payload || p.last, ask: async (v, signal) => (await call("tryDecoder", { body: trialOf(v), signal })).data.map(tried),
});
