// Decoders: what turns payloads into values. One opens to be read, changed, tried on
// the frames of its devices, saved, and to have history read again.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, code, h, pairs, stamp, state, table, told, wrong } from "../core/dom.js";
import { during, field, valuesOf } from "../core/form.js";
import { plural } from "../core/format.js";
import { go, link } from "../core/router.js";
import { section } from "../core/section.js";
import { may, ownAccount } from "../core/session.js";
import { accountOf } from "./devices.js";
import { foretell, replayEvents } from "./events.js";
import { tried } from "./try.js";

const codecs = ["json", "cayenne_lpp", "senml", "expr", "javascript"];
const hasSource = (codec) => codec === "expr" || codec === "javascript";
const lastFrames = 20;

const deviceOf = async (d, signal) => (await call("listDevicesOfAccounts", { query: { account: d.account, decoder: d.id, limit: 50 }, signal })).data;
const fails = (frames) => frames.filter((f) => f.errors.length || f.refused);

// verdict says how a decoder does with the last frames of one of its devices.
async function verdict(d, signal) {
  const [device] = await deviceOf(d, signal);
  if (!device) return h("span", { class: "hint" }, "no device uses it");
  const frames = (await call("tryDecoder", { body: { account: d.account, device_id: device.id, last: 5 }, signal })).data;
  const failing = fails(frames);
  if (!frames.length) return h("span", { class: "hint" }, "no frame in the journal");
  return failing.length ? [state("fails"), " ", failing[0].errors.length ? failing[0].errors[0].message : failing[0].refused] : state("ok");
}

async function list(main, params, signal) {
  const form = h("form", { class: "fields sheet", "aria-label": "Filters", submit: (e) => { e.preventDefault(); go("decoders", valuesOf(e.target)); } },
    field("account", "Account (name or id)", "text", params.account), h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Show"), " ", link("decoders", {}, "Clear")));
  main.append(h("h1", null, "Decoders"), h("p", { class: "intro" }, "What turns the payloads of devices into values. The last column tries each on the last frames of one of its devices; nothing is stored by that."), ownAccount() ? "" : form,
    section("All decoders", async () => {
      const found = await call("listDecodersOfAccounts", { query: { account: params.account, cursor: params.cursor, limit: 50 }, signal }), places = [];
      const rows = found.data.map((d) => {
        const place = h("div", null, h("span", { class: "hint" }, "…"));
        places.push([d, place]);
        return [link("decoders", { id: d.id, account: String(d.account) }, d.name || d.id), code(d.id), accountOf(d), d.codec, d.keys.join(", "), place];
      });
      fill(places, signal);
      return [table("Decoders", ["Decoder", "Id", "Account", "Codec", "Keys", "Last frames"], rows,
        "There is no decoder yet. An inventory declares them (docs/decoders.md), or an account makes them with POST /iot/decoders."),
      h("p", { class: "bar" }, params.cursor && link("decoders", { account: params.account }, "First page"), found.meta.next && link("decoders", { account: params.account, cursor: found.meta.next }, "More decoders"))];
    }, { signal }));
}

// fill asks for one verdict after the other, so that a page asks for no more than one
// at a time.
async function fill(places, signal) {
  for (const [d, place] of places) {
    try { place.replaceChildren(...[await verdict(d, signal)].flat()); } catch (error) {
      if (error.name === "AbortError") return;
      place.replaceChildren(h("span", { class: "hint" }, "not tried: " + error.message));
    }
  }
}

// results shows what came of a trial, the failures first.
function results(frames) {
  if (!frames.length) return h("p", { class: "empty" }, "The journal of this gateway holds no frame of this device any more. The next one can be tried.");
  const failing = fails(frames), changed = frames.filter((f) => f.readings.some((r) => r.effect === "changed" || r.effect === "added"));
  const words = [plural(frames.length, "frame") + ": " + (failing.length ? plural(failing.length, "fails", "fail") : "none fails"), changed.length && plural(changed.length, "would store", "would store") + " something else than is stored today"].filter(Boolean).join(", ");
  return [h("p", { class: failing.length ? "wrong" : "said" }, words + "."), [...failing, ...frames.filter((f) => !failing.includes(f))].map((f, i) => h("details", { open: i === 0 }, h("summary", null, f.time.slice(0, 19).replace("T", " ") + " — " +
    (f.errors.length ? f.errors[0].message : f.refused || f.readings.map((r) => r.key + " " + (r.text === undefined ? r.value : r.text) + (r.effect && r.effect !== "unchanged" ? " (" + r.effect + ")" : "")).join(", ") || "no readings")), tried(f)))];
}

// editor is the form of a decoder, its trial and its saving.
function editor(d, devices, params, signal) {
  const answer = h("div"), said = told();
  const form = h("form", { class: "fields sheet", "aria-label": "Decoder", submit: (e) => { e.preventDefault(); attempt(form.querySelector("button")); } },
    field("codec", "Codec", codecs.includes(d.codec) ? codecs : [d.codec, ...codecs], d.codec), field("source", "Source", "area", d.source, { rows: 14 }));
  const source = form.elements.source.parentElement;
  const follow = () => { source.hidden = !hasSource(form.elements.codec.value); };
  form.elements.codec.addEventListener("change", follow);
  follow();
  const chosen = h("select", { name: "device", "aria-label": "Device" }, devices.map((x) => h("option", { value: x.id }, (x.name || x.identifier) + (x.name === x.identifier ? "" : " " + x.identifier))));
  if (params.device && devices.some((x) => x.id === params.device)) chosen.value = params.device;
  const edited = () => ({ codec: form.elements.codec.value, ...hasSource(form.elements.codec.value) ? { source: form.elements.source.value } : {} });
  const attempt = (clicked) => during(clicked, said, async () => {
    const body = { account: d.account, decoder_id: d.id, device_id: chosen.value, ...edited(), last: lastFrames };
    answer.replaceChildren(...[results((await call("tryDecoder", { body, signal })).data)].flat(3));
    return "";
  });
  const save = (clicked) => during(clicked, said, async () => {
    await call("changeDecoder", { path: { decoder_id: d.id }, body: { account: d.account, ...edited() } });
    return "Saved. Frames that arrive from now on are read with it; those before keep what is stored until they are replayed, below.";
  });
  const tryButton = devices.length ? h("button", { type: "submit", class: "main" }, "Try on the last frames") : h("button", { type: "submit", class: "main", disabled: true, title: "No device uses this decoder" }, "Try on the last frames");
  form.append(h("label", null, "Frames of the device", devices.length ? chosen : h("span", { class: "hint" }, "no device uses this decoder; use Try with a payload")),
    h("p", { class: "bar wide" }, tryButton, may("changeDecoder") && button("Save", (e) => save(e.target))));
  if (devices.length) attempt(tryButton);
  return [form, said, answer];
}

const ago = (days) => new Date(Date.now() - days * 86400e3).toISOString().slice(0, 19) + "Z";

// history has events read again, after a look at what would change.
function history(d, devices, params, signal) {
  const said = told(), ctx = { said, signal, again: () => {} };
  const device = devices.find((x) => x.id === params.device);
  const form = h("form", { class: "fields sheet", "aria-label": "Replay history", submit: (e) => { e.preventDefault(); foretell(form.querySelector("button"), ctx, selection()); } },
    field("from", "From (UTC)", "time", ago(7), { required: true }), field("to", "To (UTC)", "time", "", {}),
    field("state", "Events", ["", "quarantined", "done"], "", { blank: "all of the account" }), field("q", "Whose body holds the text", "text", device ? device.identifier : ""),
    h("p", { class: "bar wide" }, h("button", { type: "submit" }, "What a replay would change"), button("Replay history", (e) => replayEvents(e.target, ctx, selection()), { class: "main" })));
  const selection = () => ({ kind: "uplink", account: String(d.account), ...valuesOf(form) });
  return [h("p", { class: "hint" }, "The frames of the account in the journal are processed again with the decoders as they are saved. Readings of the same time are overwritten; nothing is sent and no rule is evaluated."), form, said];
}

async function one(main, params, signal) {
  main.append(h("p", null, link("decoders", {}, "← All decoders")));
  const title = h("h1", null, params.id);
  main.append(title);
  let d, devices = [];
  try {
    d = await call("showDecoder", { path: { decoder_id: params.id }, query: { account: params.account }, signal });
    title.replaceChildren(d.name || d.id);
    devices = await deviceOf(d, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!d) return void main.append(wrong(error));
    main.append(wrong(error));
  }
  const keys = d.sensors.map((s) => [code(s.key), s.name || s.sensor_type_id, s.metric_units]);
  main.append(...[h("div", { class: "sheet" }, pairs([["Id", code(d.id)], ["Account", account(d.account)], ["Description", d.description], ["Type of devices", d.type], ["Reads", d.use_raw_payload ? "the raw payload, even if the network has decoded it" : "what the network has decoded if it has, else the payload"],
    ["Used by", devices.length ? link("devices", { decoder: d.id, account: String(d.account) }, plural(devices.length, "device") + (devices.length === 50 ? " or more" : "")) : "no device"]])),
  h("h2", null, "Keys"), table("Keys", ["Key", "Measures", "Unit"], keys, "It maps no key, so nothing is stored. An inventory, or POST /iot/decoders/{decoder_id}/sensors, maps keys to sensor types."),
  d.unmapped && [h("h2", null, "Keys without a mapping"), table("Keys without a mapping", ["Key", "Last seen (UTC)", "Readings#"], d.unmapped.map((k) => [code(k.key), stamp(k.last_seen), k.count]), "")],
  h("h2", null, "Codec, and what it makes of the last frames"), editor(d, devices, params, signal), may("replayEvents") && [h("h2", null, "Replay history"), history(d, devices, params, signal)]].flat(3).filter(Boolean));
}

export function show(main, params, signal) {
  return params.id ? one(main, params, signal) : list(main, params, signal);
}
