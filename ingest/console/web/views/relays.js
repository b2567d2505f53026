// Relays of all accounts: which number goes where, and an explanation of each.

import { call } from "../core/api.js";
import { code, h, table } from "../core/dom.js";
import { field } from "../core/form.js";
import { link } from "../core/router.js";
import { refreshing } from "../core/refreshing.js";

const showAtMost = 500;
const kinds = { geo: "prefix", vmn: "number" };

// all lists the relays of an inventory, those of an account together.
const all = (inventory) => (inventory.accounts || []).flatMap((a) => Object.entries(a.relays || {}).flatMap(([kind, list]) =>
  (list || []).map((r) => ({ ...r, kind, account: a }))));

const holds = (r, text) => [r.account.name, r.id, r.number, r.prefix, r.action, ...(r.parameters || [])].some((x) => String(x || "").toLowerCase().includes(text));

const row = (r) => [r.account.name + " (" + r.account.id + ")", r.id, h("span", { class: "number-of" }, code(r.number || r.prefix), h("span", { class: "hint" }, " " + (kinds[r.kind] || r.kind))), r.action,
  (r.parameters || []).map((p) => h("div", null, code(p))), code(r.filter),
  [link("explain", { account: r.account.name, to: r.number || r.prefix }, "Explain"), " ", link("deliveries", { account: r.account.name, relay: r.id, kind: "relay" }, "Deliveries")]];

export function show(main, params, signal) {
  const search = field("search", "Holds the text", "text", params.q, { type: "search" });
  const place = h("div");
  main.append(h("h1", null, "Relays"), h("p", { class: "intro" }, "Where inbound messages go: the longest prefix or the number that fits decides. Explain shows what would become of a message, without sending it. Accounts change their relays over REST, an inventory declares them."),
    h("form", { class: "sheet fields", submit: (e) => e.preventDefault(), "aria-label": "Filters" }, search), place);
  const refresh = refreshing(place, "", {
    signal, every: 30_000, load: () => call("getInventory", { signal }),
    draw: (inventory) => {
      const text = search.querySelector("input").value.trim().toLowerCase();
      const found = all(inventory).filter((r) => !text || holds(r, text));
      return [table("Relays", ["Account", "Relay", "Takes", "Action", "Parameters", "Condition", "See"], found.slice(0, showAtMost).map(row), text ? "No relay holds this text." : "No account has a relay yet. One that takes a number would be here."),
        found.length > showAtMost && h("p", { class: "hint" }, "The first " + showAtMost + " of " + found.length + " are shown.")];
    },
  });
  search.querySelector("input").addEventListener("input", refresh);
}
