// The page of a decoder: its codec with a trial on frames of its devices, the mapping of its keys,
// and the replay of history.

import { account, accountNames } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, h, pairs, table, told, when, wrong } from "../core/dom.js";
import { ask, during, editIn, editor, field, pick, valuesOf } from "../core/form.js";
import { exact, iso, newestFirst, plural } from "../core/format.js";
import { section } from "../core/section.js";
import { may, mayChange, ownAccount } from "../core/session.js";
import { guard, saved } from "../core/unsaved.js";
import { codecs, deviceTypes, readingText, typeName } from "./deviceparts.js";
import { foretell, replayEvents } from "./events.js";
import { addSensorType, sensorTypes } from "./pickers.js";
import { tried } from "./try.js";

// lastHeard returns the devices of a decoder, the last heard first.
export const lastHeard = async (d, signal) =>
  (
    await call("listDevicesOfAccounts", { query: { account: d.account, decoder: d.id, limit: 50 }, signal })
  ).data.sort((a, b) => (b.last_seen_at || "").localeCompare(a.last_seen_at || ""));
const hasSource = (codec) => codec === "expr" || codec === "javascript";
const lastFrames = 20;

const fails = (frames) => frames.filter((f) => f.errors.length || f.refused);

// addDecoder asks for a new decoder, which begins as the template of its codec, and opens its
// page.
export function addDecoder(presets = {}) {
  const codec = field("codec", "Codec", codecs, presets.codec || "json"),
    select = codec.querySelector("select");
  const source = field("source", "Source", "area", presets.source, { rows: 8, hint: "Test it on the next page." });
  let templates = [];
  const follow = () => {
    const template = templates.find((t) => t.codec === select.value);
    source.hidden = !hasSource(select.value);
    if (template && !presets.source) source.querySelector("textarea").value = template.source;
  };
  const load = async (acct) => {
    if (!acct || templates.length) return;
    templates = (await call("listDecoderTemplates", { as: acct })).data;
    follow();
  };
  select.addEventListener("change", follow);
  follow();
  load(ownAccount());
  editIn(
    "Add decoder",
    {
      go: "Add decoder",
      fields: [
        !ownAccount() && pick("account", "Account", accountNames, presets.account, { required: true, changed: load }),
        field("name", "Name", "text", presets.name, { required: true }),
        field("type", "Type of devices", deviceTypes, presets.type || "lorawan"),
        codec,
        source
      ],
      save: async (v) => {
        const acct = ownAccount() || v.account,
          template = templates.find((t) => t.codec === v.codec);
        const body = { name: v.name, description: v.name, type: v.type, codec: v.codec };
        if (hasSource(v.codec)) body.source = v.source || "";
        if (template) body.useRawPayload = template.useRawPayload;
        return { acct, data: (await call("createDecoder", { body, as: acct })).data };
      }
    },
    ({ acct, data }) => go("decoders", { id: data.id, account: String(acct) })
  );
}

// summaryOf is the result of a trial on one frame, in a line.
function summaryOf(f, sensors) {
  const effectOf = (r) =>
    readingText(r, sensors) + (r.effect && r.effect !== "unchanged" ? " (" + r.effect + ")" : "");
  const result = f.errors.length
    ? f.errors[0].message
    : f.refused || f.readings.map(effectOf).join(", ") || "no readings";
  return exact(f.time).slice(0, 19) + " — " + result;
}

// results shows the results of a trial, the failures first. Without failures and changes it is one line that unfolds.
function results(found, d) {
  const frames = newestFirst(found);
  if (!frames.length)
    return h(
      "p",
      { class: "empty" },
      "No frames of this device in this gateway's journal. Use “Test a payload”."
    );
  const failing = fails(frames),
    differing = frames.filter((f) => f.readings.some((r) => r.effect === "changed" || r.effect === "added"));
  const words = [
    plural(frames.length, "frame") + ": " + (failing.length ? plural(failing.length, "fails", "fail") : "no failures"),
    differing.length && differing.length + " would change stored readings"
  ]
    .filter(Boolean)
    .join(", ");
  const sensors = d.sensors.map((s) => ({ ...s, name: "", type_name: s.name })),
    ordered = [...failing, ...frames.filter((f) => !failing.includes(f))];
  const list = ordered.map((f, i) =>
    h("details", { open: failing.length > 0 && i === 0 }, h("summary", null, summaryOf(f, sensors)), tried(f))
  );
  return failing.length
    ? h("div", { class: "trial" }, h("p", { class: "wrong" }, words + "."), list)
    : h(
        "details",
        { class: "trial", open: differing.length > 0 },
        h("summary", { class: "said" }, words + "."),
        list
      );
}

// codecForm is the form that changes and tries a codec.
function codecForm(d, devices, params, signal) {
  const answer = h("div"),
    note = told(),
    known = codecs.some(([name]) => name === d.codec) ? codecs : [[d.codec, d.codec], ...codecs];
  const form = h(
    "form",
    {
      class: "fields sheet",
      "aria-label": "Decoder",
      submit: (e) => {
        e.preventDefault();
        attempt(form.querySelector("button"));
      }
    },
    field("codec", "Codec", known, d.codec),
    field("source", "Source", "area", d.source, {
      rows: Math.min(30, Math.max(5, (d.source || "").split("\n").length + 1)),
      class: "source"
    })
  );
  const source = form.elements.source.closest(".field");
  const follow = () => {
    source.hidden = !hasSource(form.elements.codec.value);
  };
  form.elements.codec.addEventListener("change", follow);
  follow();
  const names = devices.map((x) => [
    x.id,
    (x.name || x.identifier) + (!x.name || x.name === x.identifier ? "" : " " + x.identifier)
  ]);
  const values = () => ({
    codec: form.elements.codec.value,
    ...(hasSource(form.elements.codec.value) ? { source: form.elements.source.value } : {})
  });
  const attempt = (clicked) =>
    during(clicked, note, async () => {
      const body = {
        account: d.account,
        decoder_id: d.id,
        device_id: form.elements.device.value,
        ...values(),
        last: lastFrames
      };
      answer.replaceChildren(results((await call("tryDecoder", { body, signal })).data, d));
    });
  const save = (clicked) =>
    during(clicked, note, async () => {
      await call("patchDecoder", { path: { decoder_id: d.id }, body: values(), as: String(d.account) });
      saved(form);
      store.disabled = true;
      return "Saved. New frames use it. Replay to correct stored readings.";
    });
  const trial = h("button", { type: "submit", disabled: !devices.length }, "Test on the last frames");
  const store = button("Save", (e) => save(e.target), { class: "main", disabled: true });
  for (const name of ["input", "change"])
    form.addEventListener(name, (e) => {
      if (e.target.name !== "device") store.disabled = false;
    });
  form.append(
    devices.length
      ? field("device", "Frames of the device", names, params.device)
      : h("p", { class: "hint wide" }, "No device uses this decoder."),
    h(
      "p",
      { class: "bar wide" },
      trial,
      mayChange() && store
    )
  );
  guard(form);
  if (devices.length) attempt(trial);
  return [form, note, answer];
}

// replayForm replays the frames of a decoder, after a preview on demand.
function replayForm(d, devices, params, signal) {
  const note = told(),
    ctx = { said: note, signal, again: () => {} };
  const device = devices.find((x) => x.id === params.device) || devices[0];
  const form = h(
    "form",
    {
      class: "fields sheet",
      "aria-label": "Replay stored frames",
      submit: (e) => {
        e.preventDefault();
        foretell(form.querySelector("button"), ctx, selection());
      }
    },
    field("from", "From (UTC)", "time", iso(Date.now() - 7 * 86400e3), { required: true }),
    field("to", "To (UTC)", "time", "", { hint: "Empty: now." }),
    field(
      "device",
      "Device",
      devices.length === 1
        ? [[device.identifier, device.name || device.identifier]]
        : [["", "All devices of the account"], ...devices.map((x) => [x.identifier, x.name || x.identifier])],
      params.device && device ? device.identifier : ""
    ),
    field(
      "state",
      "Frames",
      [
        ["", "All"],
        ["quarantined", "Only those that failed"],
        ["done", "Only those that were read"]
      ],
      ""
    ),
    h(
      "p",
      { class: "bar wide" },
      h("button", { type: "submit", class: "main" }, "Preview the replay"),
      button("Replay", (e) => replayEvents(e.target, ctx, selection()))
    )
  );
  const selection = () => {
    const limits = { decoder: d.id, kind: "uplink", account: String(d.account) };
    return { ...valuesOf(form), ...limits };
  };
  return [form, note];
}

// keysForm shows the mapped keys of a decoder and maps others. note stays when the form is loaded
// again.
function keysForm(d, note, again) {
  const acct = String(d.account),
    path = { decoder_id: d.id };
  const remove = (key) =>
    button(
      "Remove",
      async (e) => {
        const effect = "New frames no longer store it. Stored readings stay.";
        if (!(await ask("Remove the key " + key + "?", effect, "Remove"))) return;
        during(e.target, note, async () => {
          await call("deleteDecoderSensor", { path: { ...path, key }, as: acct });
          again();
          return key + " is no longer mapped.";
        });
      },
      { "aria-label": "Remove the key " + key }
    );
  const rows = d.sensors.map((s) => [
    code(s.key),
    s.name || s.sensor_type_id,
    s.metric_units,
    mayChange() && remove(s.key)
  ]);
  const unmapped = (d.unmapped || []).filter((k) => !d.sensors.some((s) => s.key === k.key));
  const addType = () =>
    editIn(
      "Add sensor type",
      {
        go: "Add sensor type",
        fields: [
          field("name", "Name", "text", "", { required: true, hint: "What is measured, such as Temperature." }),
          field("units", "Unit", "text", "", { hint: "Such as °C." })
        ],
        save: (v) => addSensorType({ name: v.name, units: v.units || "" })
      },
      again
    );
  const add =
    mayChange() &&
    editor({
      label: "Map a key",
      go: "Map key",
      more: may("addSensorType") && button("Add sensor type", addType),
      fields: [
        field("key", "Key", "text", unmapped.length ? unmapped[0].key : "", { required: true, list: "unmapped" }),
        h(
          "datalist",
          { id: "unmapped" },
          unmapped.map((k) => h("option", { value: k.key }))
        ),
        pick("sensor_type_id", "Measures", sensorTypes, "", {
          required: true,
          choose: true,
          blank: "No sensor type is declared"
        })
      ],
      save: async (v) => {
        await call("addDecoderSensor", { path, body: v, as: acct });
        const text = v.key + " is mapped. New frames store it; replay to store it for earlier ones.";
        note.replaceChildren(h("p", { class: "said" }, text));
        again();
      }
    });
  return [
    table("Keys", ["Key", "Measures", "Unit", "Change"], rows, "No key is mapped, so nothing is stored.", {
      compact: true
    }),
    unmapped.length > 0 && [
      h("h3", null, "Seen, but not mapped"),
      table(
        "Keys without a mapping",
        ["Key", "Last seen", "Readings#"],
        unmapped.map((k) => [code(k.key), when(k.last_seen), k.count]),
        "",
        { compact: true }
      )
    ],
    add,
    note
  ];
}

function remove(d, note) {
  return button(
    "Delete decoder",
    async (e) => {
      const rule = "A decoder that a device uses cannot be deleted.";
      if (!(await ask("Delete " + (d.name || d.id) + "?", rule, "Delete"))) return;
      during(e.target, note, async () => {
        await call("deleteDecoder", { path: { decoder_id: d.id }, as: String(d.account) });
        go("decoders", {});
      });
    },
    { class: "danger" }
  );
}

export async function showDecoder(main, params, signal) {
  const title = h("h1", null, "…"),
    note = told();
  main.append(h("p", { class: "back" }, link("decoders", {}, "← Decoders")), title);
  const load = () =>
    call("showDecoder", { path: { decoder_id: params.id }, query: { account: params.account }, signal });
  let d,
    devices = [];
  try {
    d = await load();
    title.replaceChildren(d.name || d.id);
    devices = await lastHeard(d, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    main.append(wrong(error));
    if (!d) return;
  }
  const reads = d.use_raw_payload
    ? "The payload, even if the network decoded it"
    : "The values that the network decoded, else the payload";
  const count = plural(devices.length, "device") + (devices.length === 50 ? " or more" : "");
  const keysNote = told();
  const keys = section(
    "Mapped keys",
    async () => {
      d = await load();
      return keysForm(d, keysNote, () => keys.again());
    },
    { signal }
  );
  main.append(
    ...[
      h(
        "nav",
        { class: "bar spaced", "aria-label": "Of this decoder" },
        link("devices", { decoder: d.id, account: String(d.account) }, "Devices"),
        link("try", { account: String(d.account), decoder_id: d.id }, "Test a payload")
      ),
      h(
        "div",
        { class: "sheet" },
        pairs([
          ["Account", account(d.account)],
          ["Description", d.description],
          ["Type of devices", typeName(d.type)],
          ["Reads", reads],
          ["Used by", devices.length ? count : "No device"],
          ["ID", code(d.id)]
        ])
      ),
      h("h2", null, "Decoding"),
      codecForm(d, devices, params, signal),
      keys,
      may("replayEvents") && [h("h2", null, "Replay stored frames"), replayForm(d, devices, params, signal)],
      mayChange() && [h("p", { class: "bar" }, remove(d, note)), note]
    ]
      .flat(3)
      .filter(Boolean)
  );
}
