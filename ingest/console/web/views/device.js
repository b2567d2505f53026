// The page of a device: its state and newest values, then tabs with readings, events,
// alarms and settings. Each part loads by itself.

import { account } from "../core/accounts.js";
import { address, go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { button, code, h, long, pairs, pre, stamp, state, table, told, when } from "../core/dom.js";
import { ask, during, editor, field, pick } from "../core/form.js";
import { cut, exact, instant, iso, json, lasted, newestFirst, number, plural } from "../core/format.js";
import { section } from "../core/section.js";
import { may, mayChange } from "../core/session.js";
import { alarmActions, alarmState, alarmSummary, loadRules, ruleLink } from "./alarmparts.js";
import {
  battery,
  deviceState,
  heard,
  isOfLastFrame,
  measured,
  readingText,
  sensorName,
  strength,
  typed,
  typeName
} from "./deviceparts.js";
import { decodersOf, locationsOf } from "./pickers.js";
import { replayEvents } from "./events.js";
import { rangeForm } from "./ranges.js";

const spans = { hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400 };
const spanNames = [
  ["hour", "1 h"],
  ["day", "24 h"],
  ["week", "7 days"],
  ["month", "30 days"]
];

// rangeOf returns the range of the address: a span that ends now, or two times.
function rangeOf(params) {
  if (params.from && params.to) return { from: params.from, to: params.to };
  const to = Date.now();
  return { from: iso(to - (spans[params.span] || spans.day) * 1000), to: iso(to) };
}

// granularities are the lengths of an interval, in seconds, longest first.
const granularities = {
  two_weeks: 14 * 86400,
  ten_days: 10 * 86400,
  week: 7 * 86400,
  day: 86400,
  half_day: 12 * 3600,
  nine_hours: 9 * 3600,
  six_hours: 6 * 3600,
  three_hours: 3 * 3600,
  hour: 3600,
  half_hour: 1800,
  quarter_hour: 900,
  ten_minutes: 600,
  five_minutes: 300,
  minute: 60,
  half_minute: 30
};

// readingsOf returns the numbers of a device in a range, by sensor, for intervals of the
// longest granularity that divides the range into 120 or more.
async function readingsOf(d, range, signal) {
  const seconds = (Date.parse(range.to) - Date.parse(range.from)) / 1000;
  const granularity = Object.keys(granularities).find((g) => seconds / granularities[g] >= 120) || "half_minute";
  const { data } = await call("aggregateReadings", {
    path: { device_id: d.id },
    query: { type: "min_ave_max", startDate: range.from, endDate: range.to, granularity },
    as: d.account,
    signal
  });
  const sensors = new Map();
  for (const row of data) {
    if (!sensors.has(row.sensor_id)) sensors.set(row.sensor_id, { ...row, buckets: [] });
    const at = row.reading_date.replace(" ", "T") + "Z";
    sensors.get(row.sensor_id).buckets.push({ at, min: row.min, mean: row.ave, max: row.max });
  }
  return { data: [...sensors.values()], meta: { ...range, granularity } };
}

// head shows the state of a device and its newest values.
function head(d) {
  const read = d.sensors.filter((s) => s.at),
    waiting = d.sensors.filter((s) => !s.at);
  const decoder = { id: d.decoder_id, account: String(d.account), device: d.id };
  return [
    h(
      "p",
      { class: "hint" },
      [account(d.account), " · ", code(d.identifier), " · ", typeName(d.type)],
      d.decoder_id && [" · ", link("decoders", decoder, d.decoder_name || d.decoder_id)]
    ),
    d.missing.map((m) => h("p", { class: "note" }, "Not shown, " + m)),
    h("p", { class: "bar" }, deviceState(d), h("span", { class: "hint" }, heard(d))),
    h(
      "div",
      { class: "tiles values" },
      read.map((s) =>
        h(
          "div",
          { class: "tile" },
          h("b", null, s.value === null ? cut(s.text, 24) : measured(number(s.value), s.metric_units)),
          sensorName(s, d.sensors),
          !isOfLastFrame(s, d) && h("div", { class: "hint" }, when(s.at))
        )
      )
    ),
    waiting.length > 0 &&
      h("p", { class: "hint" }, "No readings yet for " + waiting.map(typed).join(", ") + "."),
    d.sensors.length === 0 &&
      h(
        "p",
        { class: "empty" },
        d.decoder_id
          ? ["No sensors: the decoder maps no keys. ", link("decoders", decoder, "Open the decoder")]
          : "No sensors: the device has no decoder."
      )
  ];
}

function about(d) {
  return h(
    "details",
    { class: "sheet" },
    h("summary", null, "About this device"),
    pairs([
      ["Identifier", code(d.identifier)],
      ["Account", account(d.account)],
      ["Type", typeName(d.type)],
      ["Last heard by its network", d.last_seen_at && [stamp(d.last_seen_at), " UTC"]],
      ["Battery", battery(d.radio)],
      ["Signal", strength(d.radio)],
      ["Received by", d.radio && d.radio.gateways !== null && plural(d.radio.gateways, "LoRaWAN gateway")],
      [
        "Position",
        d.position &&
          d.position.latitude +
            ", " +
            d.position.longitude +
            (d.position.source === "network" ? " (from its network)" : "")
      ],
      [
        "Decoder",
        d.decoder_id
          ? link(
              "decoders",
              { id: d.decoder_id, account: String(d.account), device: d.id },
              d.decoder_name || d.decoder_id
            )
          : "None"
      ],
      ["Comment", d.comment],
      ["ID", code(d.id)],
      ["Created", [stamp(d.created_at), " UTC"]]
    ])
  );
}

// intervalOf names an interval: "hour", "ten-minute interval".
const intervalOf = (granularity) =>
  granularity.includes("_") ? granularity.replace("_", "-").replace(/s$/, "") + " interval" : granularity;

// timeOf is the time of an interval in a chart, in seconds: its middle, or its newest reading if that is the newest
// of the sensor.
function timeOf(bucket, newest, range, step) {
  const start = Date.parse(bucket.at) / 1000,
    end = Math.min(start + step, range.to);
  const inside = newest >= start && newest < start + step && newest <= range.to;
  return inside ? newest : (Math.max(start, range.from) + end) / 2;
}

// notesOf explains the lines of alarms and markers in a chart.
function notesOf(alarms, markers) {
  const texts = markers.slice(0, 5).map((m) => m.comment + " (" + exact(m.created_at) + ")");
  return [
    alarms.length > 0 && "Red lines are alarms.",
    texts.length > 0 && "Dashed lines are markers: " + texts.join(", ") + (markers.length > 5 ? " …" : ".")
  ];
}

// drawn makes a chart of each sensor: the mean with a band from minimum to maximum, and a
// vertical line at each alarm and marker. Intervals without readings are gaps. The chart of a new device begins
// with the device.
function drawn(d, found, raised, markers, params, signal, charts) {
  charts.splice(0).forEach((made) => made.end());
  const to = Date.parse(found.meta.to) / 1000,
    first = Math.min(...found.data.map((s) => Date.parse(s.buckets[0].at)), Date.parse(d.created_at));
  const asked = Date.parse(found.meta.from) / 1000,
    from = params.from ? asked : Math.max(asked, Math.min(first / 1000, to - 600));
  const within = (t) => t >= from && t <= to;
  const ranged = (a, b) =>
    go("devices", { id: params.id, account: params.account, from: iso(a * 1000), to: iso(b * 1000) });
  const marks = raised.map((a) => Date.parse(a.raised_at) / 1000).filter(within),
    noted = markers.filter((m) => within(instant(m.created_at) / 1000)),
    notes = noted.map((m) => instant(m.created_at) / 1000);
  const typeOf = (s) => ({ key: s.key, type_name: s.name });
  const figures = found.data.map((s) => {
    const sensor = d.sensors.find((x) => x.key === s.key),
      newest = sensor && sensor.at && Date.parse(sensor.at) / 1000;
    const times = s.buckets.map((b) => timeOf(b, newest, { from, to }, granularities[found.meta.granularity])),
      line = (label, key) => ({ label, values: s.buckets.map((b) => b[key]) });
    const title = sensorName(typeOf(s), found.data.map(typeOf));
    const made = chart(
      title + " over time: minimum, mean and maximum",
      times,
      [line("Mean", "mean"), line("Minimum", "min"), line("Minimum to maximum", "max")],
      { signal, unit: s.metric_units && " " + s.metric_units, from, to, ranged, between: [2, 1], marks, notes }
    );
    charts.push(made);
    return h(
      "div",
      { class: "sheet" },
      h("h3", null, title, s.metric_units && " in " + s.metric_units),
      made
    );
  });
  if (!figures.length)
    return h("p", { class: "empty" }, "No readings in this range. The tab Events shows whether frames arrived.");
  return [
    figures,
    h(
      "p",
      { class: "hint" },
      [
        "The line is the mean of each " + intervalOf(found.meta.granularity) + ", the band minimum to maximum.",
        "Times in UTC.",
        ...notesOf(marks, noted),
        !matchMedia("(pointer: coarse)").matches && "Drag across a chart to zoom."
      ]
        .filter(Boolean)
        .join(" ")
    )
  ];
}

function frames(found, d) {
  const rows = found.map((f) => [
    f.id ? link("trace", { id: f.id.replace(/\.\d+$/, "") }, when(f.received_at)) : when(f.received_at),
    f.kind,
    f.f_port,
    f.f_cnt,
    f.encrypted ? "Encrypted" : code(f.payload),
    f.object || f.samples ? h("details", null, h("summary", null, "Values"), pre(json(f.object || f.samples))) : "",
    strength(f),
    f.refused ? [state("refused"), " ", f.refused] : f.note || "Stored"
  ]);
  const settings = link("devices", { id: d.id, account: String(d.account), tab: "settings" }, "Settings");
  return table(
    "Raw frames",
    ["Received", "Kind", "fPort#", "fCnt#", "Payload (hex)", "Decoded by the network", "Signal", "Result"],
    rows,
    ["No raw frames. Enable frame logging in the ", settings, " to keep frames for 7 days."],
    { compact: true }
  );
}

// recent shows the last frames as the decoder reads them now. The row of a frame without a
// reading gives the reason.
function recent(found, d) {
  let offered = false; // in the newest frame without a reading
  const decoder = () => {
    if (offered || !d.decoder_id) return "";
    offered = true;
    return link("decoders", { id: d.decoder_id, account: String(d.account), device: d.id }, "Fix the decoder");
  };
  const result = (f) => {
    if (f.errors.length) return [state("fails"), " ", f.errors[0].message, " ", decoder()];
    if (f.refused) return [state("refused"), " ", f.refused];
    if (!f.readings.length)
      return [
        state("unknown", "no reading"),
        " ",
        f.values.length
          ? "None of these keys is mapped: " + f.values.map((v) => v.key).join(", ") + ". "
          : "The decoder returned no values. ",
        decoder()
      ];
    return f.readings.map((r) => readingText(r, d.sensors)).join(", ");
  };
  const sources = new Set(found.map((f) => f.sender)).size;
  const events = { kind: "uplink", account: String(d.account), device: d.identifier };
  return [
    table(
      "Last frames",
      ["Frame time", "Readings", "Source", "Payload (hex)"],
      newestFirst(found).map((f) => [
        f.event ? link("trace", { id: f.event }, when(f.time)) : when(f.time),
        result(f),
        sources > 1 && f.sender,
        code(cut(f.payload, 60))
      ]),
      "No frames in this gateway's journal.",
      { compact: true }
    ),
    may("listEvents") && h("p", { class: "bar" }, link("events", events, "All events"))
  ];
}

const alarmRows = (found, again, note) =>
  table(
    "Alarms",
    ["Rule", "Readings", "State", "Raised", "Duration", "Note", "Change"],
    found.map((a) => [
      ruleLink(a),
      alarmSummary(a),
      alarmState(a),
      link(
        "alarms",
        { account: String(a.account), device_id: a.device_id, rule_id: a.rule_id, open: a.id },
        when(a.raised_at)
      ),
      a.cleared_at && lasted(a.raised_at, a.cleared_at),
      a.note,
      alarmActions(a, note, again)
    ]),
    "No alarms.",
    { compact: true }
  );

// settings is the form that changes a device. It sends the fields of shown that have another value, also an empty one.
function settings(d, params, again) {
  const acct = String(d.account),
    path = { device_id: d.id },
    at = d.position && d.position.source === "device" ? d.position : {};
  const shown = {
    decoder_id: d.decoder_id || "",
    location_id: d.location_id || "",
    latitude: String(at.latitude ?? ""),
    longitude: String(at.longitude ?? "")
  };
  return editor({
    label: "Settings",
    go: "Save",
    fields: [
      field("name", "Name", "text", d.name, { required: true, maxlength: 255 }),
      field("comment", "Comment", "text", d.comment, { maxlength: 2000 }),
      pick("decoder_id", "Decoder", () => decodersOf(acct), d.decoder_id, { blank: "None" }),
      pick("location_id", "Location", () => locationsOf(acct), d.location_id, {
        blank: "None",
        only: Boolean(d.location_id)
      }),
      field("latitude", "Latitude", "text", at.latitude, {
        inputmode: "decimal",
        hint: "Degrees; south is negative."
      }),
      field("longitude", "Longitude", "text", at.longitude, {
        inputmode: "decimal",
        hint: "Degrees; west is negative."
      }),
      field("frame_logging", "Frame logging: keep raw frames for 7 days", "check", d.frame_logging)
    ],
    save: async (v) => {
      const body = {
        name: v.name,
        comment: v.comment || "",
        frame_logging: v.frame_logging ? "enabled" : "disabled"
      };
      for (const key of Object.keys(shown)) if ((v[key] || "") !== shown[key]) body[key] = v[key] || "";
      await call("patchDevice", { path, body, as: acct });
      for (const key of Object.keys(shown)) shown[key] = v[key] || "";
      again();
      return "Saved.";
    }
  });
}

// removal is the button that deletes a device.
function removal(d) {
  const note = told();
  const remove = async (e) => {
    const sure = await ask(
      "Delete " + (d.name || d.identifier) + "?",
      "Its readings and markers are deleted too. A new frame creates the device again.",
      "Delete"
    );
    if (sure)
      during(e.target, note, async () => {
        await call("deleteDevice", { path: { device_id: d.id }, as: String(d.account) });
        go("devices", {});
      });
  };
  return [h("p", { class: "bar" }, button("Delete device", remove, { class: "danger" })), note];
}

// markers shows the markers of a device and the form that adds one.
function markers(d, found, again) {
  const form = editor({
    label: "Add marker",
    go: "Add marker",
    fields: [
      field("comment", "Note", "text", "", { required: true, maxlength: 2000, wide: true }),
      field("date_published", "Time (UTC)", "time", "", { hint: "Empty: now." })
    ],
    save: async (v, f) => {
      await call("addEventMarker", {
        path: { device_id: d.id },
        as: String(d.account),
        body: {
          event_marker_id: "console-" + Date.now(),
          comment: v.comment,
          ...(v.date_published ? { date_published: v.date_published } : {})
        }
      });
      f.reset();
      again();
      return "Marker added.";
    }
  });
  return [
    table(
      "Markers",
      ["Time (UTC)", "Note"],
      found.map((m) => [stamp(m.created_at), long(m.comment)]),
      "No markers.",
      { compact: true }
    ),
    mayChange() && form
  ];
}

const lastFrames = 20; // of the tab Events

const tabs = [
  ["", "Readings"],
  ["events", "Events"],
  ["alarms", "Alarms"],
  ["settings", "Settings"]
];

export async function showDevice(main, params, signal) {
  const path = { device_id: params.id },
    query = { account: params.account },
    charts = [],
    tab = params.tab || "",
    note = told();
  const title = h("h1", null, "…");
  let device = null;
  const load = () => {
    device = call("showDevice", { path, query, signal }).then(({ data }) => {
      title.replaceChildren(data.name || data.identifier);
      return data;
    });
    return device;
  };
  main.append(h("p", { class: "back" }, link("devices", {}, "← Devices")), title);
  const missing = await load().then(
    () => false,
    (error) => error.status === 404
  );
  if (signal.aborted) return;
  if (missing) {
    title.replaceChildren("Device");
    return void main.append(h("p", { class: "empty" }, "This device does not exist any more."));
  }
  let latest = device; // loaded above, for the first time that the head is shown
  const top = section(
    "",
    async () => {
      const found = latest || load();
      latest = null;
      return head(await found);
    },
    { signal, every: 10000 }
  );
  const bar = h(
    "nav",
    { class: "tabs", "aria-label": "Parts of the device" },
    tabs.map(([name, text]) =>
      h(
        "a",
        {
          href: address("devices", { id: params.id, account: params.account, tab: name }),
          "aria-current": name === tab ? "page" : false
        },
        text
      )
    )
  );
  main.append(top, bar, note);
  const current = async () => device || load();
  const own = async (name) => (await call(name, { path, as: (await current()).account, signal })).data;
  const alarmsOf = async () => {
    await loadRules(signal).catch(() => {});
    return (
      await call("listAlarmsOfAccount", {
        query: { account: params.account, device_id: params.id, limit: 50 },
        signal
      })
    ).data;
  };
  if (tab === "events") {
    const replay = async (e) => {
      const d = await current();
      const selection = { kind: "uplink", account: params.account, device: d.identifier };
      replayEvents(e.target, { said: note, signal, again: () => {} }, selection);
    };
    main.append(
      section(
        "Last frames",
        async () => {
          const body = { account: params.account, device_id: params.id, last: lastFrames },
            { data } = await call("tryDecoder", { body, signal });
          return recent(data, await current());
        },
        {
          signal,
          actions: may("replayEvents") && button("Replay all frames of this device", replay),
          hint:
            "The last " +
            lastFrames +
            " frames that arrived, read with the decoder as it is now. Stored readings may differ."
        }
      ),
      section("Raw frames", async () => frames(await own("listFrames"), await current()), { signal })
    );
  } else if (tab === "alarms") {
    const list = section("", async () => alarmRows(await alarmsOf(), () => list.again(), note), {
      signal,
      every: 15000
    });
    main.append(list);
  } else if (tab === "settings") {
    const notes = section(
      "Markers",
      async () =>
        markers(await current(), await own("listEventMarkers"), () => notes.again()),
      { signal, hint: "Notes at a time, such as a new battery. The chart marks them." }
    );
    if (mayChange())
      main.append(section("", async () => settings(await current(), params, () => top.again()), { signal }));
    main.append(notes);
    if (mayChange()) main.append(section("", async () => removal(await current()), { signal }));
  } else {
    main.append(
      rangeForm({
        view: "devices",
        params,
        spans: spanNames,
        chosen: params.from ? "" : params.span || "day",
        range: rangeOf(params)
      }),
      section(
        "",
        async () => {
          const [raised, notes] = await Promise.all(
            [alarmsOf(), own("listEventMarkers")].map((asked) => asked.catch(() => []))
          );
          const d = await current();
          return drawn(d, await readingsOf(d, rangeOf(params), signal), raised, notes, params, signal, charts);
        },
        { signal, every: params.from ? 0 : 30000 }
      ),
      section("", async () => about(await current()), { signal })
    );
  }
}
