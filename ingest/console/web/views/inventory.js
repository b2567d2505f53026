// Inventory: what was declared, secrets masked.

import { call } from "../core/api.js";
import { code, h, pre, table, wrong } from "../core/dom.js";
import { json, plural } from "../core/format.js";
import { link } from "../core/router.js";

const showAtMost = 200;

function relays(account) {
  const all = Object.entries(account.relays || {}).flatMap(([kind, list]) => (list || []).map((r) => ({ kind, ...r })));
  const rows = all.slice(0, showAtMost).map((r) => [r.kind, r.id, r.number || r.prefix, r.action, (r.parameters || []).map((p) => h("div", null, code(p))), code(r.filter),
    link("explain", { account: String(account.id), to: r.number || r.prefix }, "Explain")]);
  return [h("h3", null, "Relays"), table("Relays", ["Kind", "Relay", "Number or prefix", "Action", "Parameters", "Condition", "Action"], rows, "None.")];
}

function decoders(account) {
  const rows = (account.decoders || []).slice(0, showAtMost).map((d) => [link("try", { account: String(account.id), decoder_id: d.id }, d.id), d.name, d.type, d.codec || "json", (d.sensors || []).map((s) => s.key + " → " + s.sensor_type_id).join(", ")]);
  return [h("h3", null, "Decoders"), table("Decoders", ["Decoder", "Name", "Type", "Codec", "Sensors"], rows, "None.")];
}

// asDeclared is the rest of an account; long lists are cut.
function asDeclared(account) {
  const rest = Object.entries(account).filter(([name]) => name !== "relays" && name !== "decoders")
    .map(([name, value]) => [name, Array.isArray(value) && value.length > showAtMost ? [...value.slice(0, showAtMost), "… " + (value.length - showAtMost) + " more"] : value]);
  return [h("h3", null, "The rest, as declared"), pre(json(Object.fromEntries(rest)))];
}

function accountSheet(a) {
  const n = (list) => (list || []).length;
  const of = a.relays || {};
  const told = [plural(n(a.tokens), "token"), plural(n(of.geo) + n(of.vmn), "relay"), plural(n(a.decoders), "decoder"), plural(n(a.rules), "rule"), plural(n(a.locations), "location"), plural(n(a.sims), "SIM"), plural(n(a.ledgers), "ledger")].join(", ");
  const inside = h("div");
  return h("details", { class: "sheet", toggle: (e) => { if (e.target.open && !inside.firstChild) inside.append(...[relays(a), decoders(a), asDeclared(a)].flat()); } },
    h("summary", null, h("b", null, a.name + " (" + a.id + ")"), " — " + told), inside);
}

export async function show(main, params, signal) {
  const body = h("div", null, h("p", { class: "hint" }, "Loading…"));
  main.append(h("h1", null, "Inventory"), h("p", { class: "intro" }, "What was declared, secrets masked. It is read only: applying a document changes it (penstock apply), and a mistake in one refuses it whole."), body);
  try {
    const found = await call("getInventory", { signal });
    const types = (found.sensor_types || []).map((s) => [s.id, s.name, s.metric_units, s.imperial_units]);
    body.replaceChildren(h("h2", null, "Accounts"), ...(found.accounts || []).map(accountSheet), ...(found.accounts || []).length ? [] : [h("p", { class: "empty" }, "No account is declared yet. Write an inventory (deploy/inventory.example.yaml shows every field) and apply it: penstock apply -f inventory.yaml")],
      h("h2", null, "Sensor types"), table("Sensor types", ["Id", "Name", "Metric", "Imperial"], types, "None is declared."));
  } catch (error) {
    if (error.name !== "AbortError") body.replaceChildren(wrong(error));
  }
}
