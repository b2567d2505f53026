// Relays of all accounts: which number goes where. One opens to be changed and saved,
// and to see which relay takes a message.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { code, h, pairs, stamp, table, told } from "../core/dom.js";
import { during, field, valuesOf } from "../core/form.js";
import { filterForm } from "../core/list.js";
import { link } from "../core/router.js";
import { section } from "../core/section.js";
import { may, ownAccount } from "../core/session.js";
import { explained } from "./explain.js";

const pageSize = 100;
const takes = { geo: "prefix", vmn: "number" };
const wants = { urls: "URLs, one a line", addresses: "Mail addresses, one a line", labels: "Labels, one a line" };
const hints = { urls: "%m, %o, %d and other placeholders stand for what the message has (docs/api/relays.md).", labels: "Applications read the messages under these.", addresses: "" };

const sight = (r) => [(r.parameters || []).map((p) => h("div", null, code(p))), r.hidden && r.parameters.length > 0 && h("div", { class: "hint" }, "paths are hidden from your role"), r.unopened && h("div", { class: "hint" }, "the record does not open: restore it or its key from a backup")];
const addressOf = (r) => ({ id: r.id, kind: r.kind, account: String(r.account) });
const exampleOf = (r) => (r.kind === "geo" ? (r.number + "000000000000").slice(0, Math.max(12, r.number.length)) : r.number);

const row = (r) => [link("relays", addressOf(r), r.id), account(r.account), h("span", null, h("span", { class: "hint" }, takes[r.kind] + " "), code(r.number)), r.action, sight(r), code(r.filter),
  link("deliveries", { account: String(r.account), relay: r.id, kind: "relay" }, "Deliveries")];

function list(main, params, signal) {
  const { cursor, ...filter } = params;
  main.append(h("h1", null, "Relays"), h("p", { class: "intro" }, "Where inbound messages go, as it is now: a virtual number takes its messages, else the longest prefix that fits. Open a relay to " + (may("changeRelay") ? "change it and to see which messages it takes." : "see all of it.") + " An inventory adds and removes relays."),
    filterForm("relays", "listRelaysOfAccounts", params),
    section("", async () => {
      const found = await call("listRelaysOfAccounts", { query: { ...filter, account: ownAccount() || filter.account, cursor, limit: pageSize }, signal });
      return [table("Relays", ["Relay", "Account", "Takes", "Action", "To", "Condition", "See"], found.data.map(row),
        Object.keys(filter).length ? "No relay matches these filters." : "There is no relay yet, so inbound messages are unrouted. An inventory declares those of an account (relays:, docs/inventory.md)."),
      h("p", { class: "bar" }, cursor && link("relays", filter, "First page"), found.meta.next && link("relays", { ...filter, cursor: found.meta.next }, "More relays"))];
    }, { signal, every: 30_000 }));
}

// editor changes what a message leads to.
function editor(r, saved) {
  const said = told(), names = r.actions.map((a) => a.name);
  const parameters = field("parameters", "Parameters", "area", r.parameters.join("\n"), { rows: Math.max(3, r.parameters.length) });
  const about = h("p", { class: "hint wide", id: "about-action" });
  const condition = field("filter", "Condition (empty: all messages)", "text", r.filter, { maxlength: 1024 });
  condition.classList.add("wide");
  const form = h("form", { class: "fields sheet", "aria-label": "Relay", submit: (e) => { e.preventDefault(); save(form.querySelector("button")); } },
    field("action", "Action", names.includes(r.action) ? names : [r.action, ...names], r.action, { "aria-describedby": "about-action" }), about, parameters,
    condition, h("p", { class: "bar wide" }, h("button", { type: "submit", class: "main" }, "Save")));
  const follow = () => {
    const chosen = r.actions.find((a) => a.name === form.elements.action.value) || { description: "", takes: "" };
    about.textContent = [chosen.description + ".", hints[chosen.takes]].filter(Boolean).join(" ");
    parameters.hidden = !chosen.takes;
    parameters.firstChild.textContent = wants[chosen.takes] || "Parameters";
  };
  form.elements.action.addEventListener("change", follow);
  follow();
  const save = (clicked) => during(clicked, said, async () => {
    const lines = parameters.hidden ? [] : form.elements.parameters.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const body = { account: r.account, action: form.elements.action.value, parameters: lines, filter: form.elements.filter.value.trim() };
    saved((await call("changeRelay", { path: { kind: r.kind, relay_id: r.id }, body })).data);
    return "Saved. The next message follows it; deliveries that exist stay as they are.";
  });
  return [form, said];
}

// question asks which relay takes a message.
function question(r, signal) {
  const said = told(), answer = h("div");
  const form = h("form", { class: "fields sheet", "aria-label": "Explain a message", submit: (e) => { e.preventDefault(); explain(form.querySelector("button")); } },
    field("to", "To (destination)", "text", exampleOf(r), { required: true, inputmode: "tel" }), field("from", "From (originator)", "text", "447700900123", { required: true }), field("text", "Text", "text", "Test"),
    h("p", { class: "bar wide" }, h("button", { type: "submit" }, "Explain this message")));
  const explain = (clicked) => during(clicked, said, async () => {
    answer.replaceChildren(...explained(await call("explainRelay", { body: valuesOf(form), signal })).flat(3).filter(Boolean));
    return "";
  });
  return [h("h2", null, "Which relay takes a message"), h("p", { class: "hint" }, "Decided with the relays as they are saved, of all accounts. Nothing is saved or sent."), form, said, answer];
}

const facts = (r) => pairs([["Account", account(r.account)], ["Takes", ["messages to the " + takes[r.kind] + " ", code(r.number), r.kind === "geo" ? ", unless a longer prefix or a virtual number takes them" : ""]],
  ["Action", r.action], ["To", sight(r)], ["Condition", r.filter ? code(r.filter) : "none: it takes every message"], ["SIM", r.iccid && link("sims", { id: r.iccid, account: String(r.account) }, r.iccid)],
  ["Pace", [r.pace.concurrency && r.pace.concurrency + " requests at a time", r.pace.per_second && r.pace.per_second + " a second", r.pace.ordered && "in order"].filter(Boolean).join(", ")],
  ["Changed", stamp(r.updated_at)],
  ["Declared by", r.document && ["the inventory document ", h("b", null, r.document), ". An apply sets the " + takes[r.kind] + ", and keeps action, parameters and condition as they are here, unless it resets relays (penstock apply --reset relays)."]],
  ["See", link("deliveries", { account: String(r.account), relay: r.id, kind: "relay" }, "its deliveries")]]);

function one(main, params, signal) {
  const sheet = h("div", { class: "sheet" });
  main.append(h("p", null, link("relays", {}, "← All relays")), h("h1", null, "Relay " + params.id), section("", async () => {
    const r = (await call("showRelay", { path: { kind: params.kind, relay_id: params.id }, query: { account: params.account }, signal })).data;
    sheet.replaceChildren(facts(r));
    return [sheet, may("changeRelay") && [h("h2", null, "Change it"), editor(r, (now) => sheet.replaceChildren(facts(now)))], may("explainRelay") && question(r, signal)];
  }, { signal }));
}

export function show(main, params, signal) {
  return params.id ? one(main, params, signal) : list(main, params, signal);
}
