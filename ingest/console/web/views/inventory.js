// Inventory: the declared documents, with masked secrets.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { code, fold, h, pre, table, wrong } from "../core/dom.js";
import { actionWord } from "../core/filters.js";
import { json, plural } from "../core/format.js";
import { codecWord, typeName } from "./deviceparts.js";
import { drift } from "./drift.js";

const rowLimit = 200;

function relays(account) {
  const declared = Object.entries(account.relays || {}).flatMap(([kind, list]) =>
    (list || []).map((r) => ({ kind, ...r }))
  );
  const rows = declared
    .slice(0, rowLimit)
    .map((r) => [
      link("relays", { id: r.id, kind: r.kind, account: String(account.id) }, r.id),
      r.number || r.prefix,
      actionWord(r.action),
      (r.parameters || []).map((p) => h("div", null, code(p))),
      code(r.filter)
    ]);
  return [
    h("h3", null, "Relays"),
    table("Relays", ["Relay", "Number or prefix", "Action", "Parameters", "Condition"], rows, "No relays.")
  ];
}

function decoders(account) {
  const rows = (account.decoders || [])
    .slice(0, rowLimit)
    .map((d) => [
      link("decoders", { account: String(account.id), id: d.id }, d.name || d.id),
      typeName(d.type),
      codecWord(d.codec || "json"),
      (d.sensors || []).map((s) => s.key + " → " + s.sensor_type_id).join(", "),
      code(d.id)
    ]);
  return [
    h("h3", null, "Decoders"),
    table("Decoders", ["Decoder", "Type", "Codec", "Sensors", "ID"], rows, "No decoders.")
  ];
}

// document shows the other fields of an account; long lists are cut.
function document(account) {
  const shorten = (value) =>
    Array.isArray(value) && value.length > rowLimit
      ? [...value.slice(0, rowLimit), "… " + (value.length - rowLimit) + " more"]
      : value;
  const remaining = Object.entries(account)
    .filter(([name]) => name !== "relays" && name !== "decoders")
    .map(([name, value]) => [name, shorten(value)]);
  return h(
    "details",
    null,
    h("summary", null, "Everything else, as declared"),
    pre(json(Object.fromEntries(remaining)))
  );
}

function accountSheet(a) {
  const n = (list) => (list || []).length,
    declared = a.relays || {};
  const counts = [
    plural(n(a.tokens), "token"),
    plural(n(declared.geo) + n(declared.vmn), "relay"),
    plural(n(a.decoders), "decoder"),
    plural(n(a.rules), "rule"),
    plural(n(a.locations), "location"),
    plural(n(a.sims), "SIM"),
    plural(n(a.ledgers), "ledger")
  ].join(", ");
  const inside = h("div");
  const fill = (e) => {
    if (e.target.open && !inside.firstChild) inside.append(...[relays(a), decoders(a), document(a)].flat());
  };
  return h(
    "details",
    { class: "sheet", toggle: fill },
    h("summary", null, h("b", null, a.name), " — " + counts),
    inside
  );
}

export async function show(main, params, signal) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…"));
  main.append(
    h("h1", null, "Inventory"),
    h(
      "p",
      { class: "intro" },
      "Read only. Change it with ",
      code("penstock apply"),
      "; a document with an error changes nothing."
    ),
    drift(signal),
    body
  );
  try {
    const found = await call("getInventory", { signal }),
      declared = found.accounts || [];
    const types = (found.sensor_types || []).map((s) => [s.name, s.metric_units, s.imperial_units, code(s.id)]);
    body.replaceChildren(
      h("h2", null, "Accounts"),
      fold("Accounts", declared.map(accountSheet), (shown) => h("div", null, shown)),
      ...(declared.length
        ? []
        : [
            h(
              "p",
              { class: "empty" },
              "No accounts are declared. ",
              link("accounts", {}, "Add an account"),
              " here, or apply a document."
            )
          ]),
      h("h2", null, "Sensor types"),
      table("Sensor types", ["Name", "Metric", "Imperial", "ID"], types, "No sensor types are declared.", {
        compact: true
      })
    );
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(wrong(error));
  }
}
