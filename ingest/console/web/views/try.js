// Test: a decoder on a payload or on the last frames of a device.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, h, pairs, stamp, state, table } from "../core/dom.js";
import { asking, during, field, pick, reveal, valuesOf } from "../core/form.js";
import { took } from "../core/format.js";
import { codecs, codecWord, valueOf } from "./deviceparts.js";
import { named, ofAccount } from "./pickers.js";

// tried shows the result of a decoder on a frame beside the stored readings. decoder is { id, account } for a
// link to the decoder where a key is not mapped.
export function tried(f, decoder) {
  const place = (e) => (e.line ? " (line " + e.line + (e.column ? ", column " + e.column : "") + ")" : "");
  const mapping = (text) => decoder && text.startsWith("no sensor") && [" ", link("decoders", decoder, "Map it")];
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
    f.warnings.map((w) => h("p", { class: "note" }, w, mapping(w))),
    f.refused &&
      !f.errors.some((e) => e.message === f.refused) &&
      h("p", { class: "note" }, "Would not be stored: " + f.refused, mapping(f.refused)),
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
const results = (f, readings, timed = f.values.some((v) => v.time)) => [
  h("h3", null, "Values"),
  table(
    "Values",
    ["Key", "Value", "Time (UTC)"],
    f.values.map((v) => [v.key, valueOf(v), v.time ? stamp(v.time) : timed && "Time of the frame"]),
    "No values.",
    { compact: true }
  ),
  h("h3", null, "Readings"),
  table(
    "Readings",
    ["Key", "Value", "Sensor type", "Time (UTC)", "Compared with stored"],
    readings,
    f.values.length ? "No readings: none of these keys is mapped." : "No readings.",
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
      formOf().elements.source.closest("details").open = true;
      return d.name + ": " + codecWord(d.codec) + (d.source ? "; edit its source below." : ", which has no source.");
    })
  );

// fields are the inputs of the form. The last frames of a device stand in the place of the payload.
function fields(p) {
  const payload = [
    field("payload", "Payload", "area", p.payload),
    field(
      "form",
      "The payload is",
      [
        ["hex", "Hexadecimal"],
        ["base64", "Base64"],
        ["values", "A JSON object of values"],
        ["body", "A body as a sender posts it"]
      ],
      p.form
    ),
    field("fPort", "fPort", "number", p.fPort)
  ];
  const ofDevice = (acct) => {
    const preset = acct === (p.account || "") ? p : {};
    const last = field("last", "Number of last frames", "number", preset.last, {
      hint: "Leave empty to use the payload below.",
      input: () => follow()
    });
    const device = pick("device_id", "Or device", () => named("listDevicesOfAccounts", acct), preset.device_id, {
      blank: "None",
      changed: () => follow()
    });
    const follow = () => {
      const chosen = device.querySelector("select").value !== "";
      reveal(last, chosen);
      for (const part of payload) reveal(part, !(chosen && last.querySelector("input").value));
    };
    follow();
    return [
      pick("decoder_id", "Decoder", () => named("listDecodersOfAccounts", acct), preset.decoder_id, { blank: "None" }),
      device,
      last
    ];
  };
  return [
    ofAccount(p.account, ofDevice),
    payload,
    h(
      "details",
      { class: "wide", open: Boolean(p.codec || p.source) },
      h("summary", null, "Codec and source, instead of the stored ones"),
      h(
        "div",
        { class: "fields" },
        field("codec", "Codec", ["", ...codecs], p.codec, { blank: "The stored one" }),
        field("source", "Source", "area", p.source)
      )
    )
  ];
}

export const show = asking({
  view: "try",
  title: "Test a payload",
  go: "Test",
  more: loadSource,
  intro: "Test a decoder on a payload. Choose a decoder or a device, or enter a codec. Nothing is stored.",
  fields,
  ready: (p) => p.payload || p.last,
  ask: async (v, signal) => {
    const decoder = v.decoder_id && { id: v.decoder_id, account: v.account };
    return (await call("tryDecoder", { body: trialOf(v), signal })).data.map((f) => tried(f, decoder));
  }
});
