// Try: a decoder on a payload or on the last frames of a device.

import { accountNames } from "../core/accounts.js";
import { link } from "../core/address.js";
import { all, call } from "../core/api.js";
import { button, code, h, pairs, stamp, state, table } from "../core/dom.js";
import { asking, during, field, pick, valuesOf } from "../core/form.js";
import { took } from "../core/format.js";
import { codecs, codecWord, valueOf } from "./deviceparts.js";

// tried shows the result of a decoder on a frame beside the stored readings.
export function tried(f) {
  const place = (e) => (e.line ? " (line " + e.line + (e.column ? ", column " + e.column : "") + ")" : "");
  const stored = (r) => f.stored.find((s) => s.sensor_id === r.sensor_id && s.key === r.key && s.time === r.time);
  const readings = f.readings.map((r) => [
    r.key,
    valueOf(r),
    r.sensor_type_id,
    stamp(r.time),
    [state(r.effect), r.effect !== "unchanged" && stored(r) && " stored now: " + valueOf(stored(r))]
  ]);
  return h(
    "div",
    { class: "sheet" },
    f.errors.map((e) => h("p", { class: "wrong" }, e.message.includes("line ") ? e.message : e.message + place(e))),
    f.warnings.map((w) => h("p", { class: "note" }, w)),
    f.refused &&
      !f.errors.some((e) => e.message === f.refused) &&
      h("p", { class: "note" }, "Would not be stored: " + f.refused),
    pairs([
      ["Device", f.identifier],
      ["Source", f.sender],
      ["Time", [stamp(f.time), " UTC"]],
      ["fPort", f.fPort],
      ["Payload", code(f.payload)],
      ["Took", f.took_us >= 10_000 && took(f.took_us / 1000)],
      ["Event", f.event && link("trace", { id: f.event }, "Timeline")],
      ["Notes", f.notes.length > 0 && f.notes.map((n) => h("div", null, n))]
    ]),
    f.errors.length === 0 && results(f, readings)
  );
}

// results shows the values and readings of a frame.
const results = (f, readings) => [
  h("h3", null, "Values"),
  table(
    "Values",
    ["Key", "Value", "Time (UTC)"],
    f.values.map((v) => [v.key, valueOf(v), v.time ? stamp(v.time) : "as the frame"]),
    "No values.",
    { compact: true }
  ),
  h("h3", null, "Readings"),
  table(
    "Readings",
    ["Key", "Value", "Sensor type", "Time (UTC)", "Compared with stored"],
    readings,
    "No readings: no key is mapped.",
    { compact: true }
  )
];

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
    try {
      frame[v.form] = JSON.parse(v.payload);
    } catch (error) {
      if (v.form === "values") throw new Error("Values are a JSON object: " + error.message);
    }
  }
  return { ...body, frames: [frame] };
}

// named returns the records of one or all accounts to pick from.
const named = async (op, account) =>
  (await all(op, { query: { account } })).map((x) => [x.id, x.name || x.identifier || x.id]);

// loadSource fetches a stored decoder, so that its source can be tried changed.
const loadSource = (formOf, note, signal) =>
  button("Load the decoder's source", (e) =>
    during(e.target, note, async () => {
      const v = valuesOf(formOf());
      if (!v.decoder_id) return h("p", { class: "wrong", role: "alert" }, "Choose a decoder first.");
      const d = await call("showDecoder", {
        path: { decoder_id: v.decoder_id },
        query: { account: v.account },
        signal
      });
      formOf().elements.codec.value = d.codec;
      formOf().elements.source.value = d.source;
      return d.name + ": " + codecWord(d.codec) + (d.source ? "; edit its source below." : ", which has no source.");
    })
  );

export const show = asking({
  view: "try",
  title: "Try a payload",
  go: "Try",
  more: loadSource,
  intro: "Test a decoder on a payload. Choose a decoder or a device, or enter a codec. Nothing is stored.",
  fields: (p) => [
    pick("account", "Account", accountNames, p.account, { blank: "Any" }),
    pick("decoder_id", "Decoder", () => named("listDecodersOfAccounts", p.account), p.decoder_id, { blank: "None" }),
    pick("device_id", "Or device", () => named("listDevicesOfAccounts", p.account), p.device_id, { blank: "None" }),
    field("last", "Last frames of the device", "number", p.last, { hint: "Empty: the payload below." }),
    field("payload", "Payload", "area", p.payload),
    field(
      "form",
      "The payload is",
      [
        ["hex", "hexadecimal"],
        ["base64", "base64"],
        ["values", "a JSON object of values"],
        ["body", "a body as a sender posts it"]
      ],
      p.form
    ),
    field("fPort", "fPort", "number", p.fPort),
    field("codec", "Codec", ["", ...codecs], p.codec, {
      blank: "the stored one"
    }),
    field("source", "Source, instead of the stored one", "area", p.source)
  ],
  ready: (p) => p.payload || p.last,
  ask: async (v, signal) => (await call("tryDecoder", { body: trialOf(v), signal })).data.map(tried)
});
