// SIMs of one or all accounts, with what they used; one SIM has a page with charts.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { button, code, h, pairs, stamp, state, table } from "../core/dom.js";
import { field, valuesOf } from "../core/form.js";
import { bytes } from "../core/format.js";
import { filterForm } from "../core/list.js";
import { go, link } from "../core/router.js";
import { section } from "../core/section.js";
import { ownAccount } from "../core/session.js";

const pageSize = 100;
const spans = { day: 1, week: 7, month: 30, year: 365 };
const iso = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";
const simLink = (s) => link("sims", { id: s.iccid, account: String(s.account) }, s.iccid);
const changing = (s) => s.requested_state !== s.state && [" ", state("becomes " + s.requested_state)];

// of says how much of a limit is used: "1.2 MiB of 5 MiB (24 %)".
function of(used, limit) {
  if (!limit.monthly) return bytes(used);
  const share = Math.round(used / limit.monthly * 100);
  return [bytes(used) + " of " + bytes(limit.monthly) + " (" + share + " %)", share >= 100 ? [" ", state("limit reached")] : limit.warning && used >= limit.warning ? [" ", state("warning")] : ""];
}

const row = (s) => [simLink(s), account(s.account), s.msisdn, s.imsi, [state(s.state), changing(s)], s.services.map((x) => x.toUpperCase()).join(", "),
  s.pool_id && link("sims", { pool: s.pool_id, account: String(s.account) }, s.pool_id.slice(0, 12)), of(s.month_bytes, s.limit)];

function list(main, params, signal) {
  const { cursor, ...filter } = params;
  main.append(h("h1", null, "SIMs"), h("p", { class: "intro" }, "The SIMs of accounts, and what each has used this month. Open one for its usage over time. Accounts change their SIMs over REST, an inventory declares them."),
    filterForm("sims", "listSIMsOfAccounts", params),
    section("", async () => {
      const found = await call("listSIMsOfAccounts", { query: { ...filter, account: ownAccount() || filter.account, cursor, limit: pageSize }, signal });
      return [table("SIMs", ["SIM (ICCID)", "Account", "Number", "IMSI", "State", "Services", "Pool", "Used this month"], found.data.map(row),
        Object.keys(filter).length ? "No SIM matches these filters." : "There is no SIM yet. An inventory declares those of an account (sims:, docs/inventory.md)."),
      h("p", { class: "bar" }, cursor && link("sims", filter, "First page"), found.meta.next && link("sims", { ...filter, cursor: found.meta.next }, "More SIMs"))];
    }, { signal, every: 15_000 }));
}

const caps = { none: "nothing", notify: "recipients are notified", block: "recipients are notified and the SIM is suspended" };

function about(s) {
  const limit = (l) => l.monthly ? bytes(l.monthly) + (l.warning ? ", warning at " + bytes(l.warning) : "") + "; at the limit " + caps[l.cap] : "no limit";
  return h("div", { class: "sheet" }, pairs([["Account", account(s.account)], ["State", [state(s.state), changing(s)]], ["Number", s.msisdn], ["IMSI", s.imsi], ["Services", s.services.map((x) => x.toUpperCase()).join(", ")],
    ["Subscriber", code(s.subscriber_id)], ["Job under way", code(s.job_id)], ["Used this month", of(s.month_bytes, s.limit)], ["Limit", limit(s.limit)], ["Notified", s.recipients.join(", ") || "nobody"],
    ["Pool", s.pool && link("sims", { pool: s.pool.id, account: String(s.account) }, s.pool.name || s.pool.id)], ["Pool's usage", s.pool && of(s.pool.month_bytes, s.pool.limit)], ["Pool's limit", s.pool && limit(s.pool.limit)]]));
}

// perStep fills the steps in which nothing was used with zeros.
function perStep(found, type, pick) {
  const { from, to, step } = found.meta, values = new Map(found.data.filter((d) => d.type === type).map((d) => [Date.parse(d.at) / 1000, pick(d)]));
  const times = [], out = [];
  for (let t = Date.parse(from) / 1000; t < Date.parse(to) / 1000; t += step) { times.push(t); out.push(values.get(t) || 0); }
  return [times, out];
}

function usage(found, charts, signal) {
  charts.splice(0).forEach((one) => one.end());
  if (!found.data.length) return h("p", { class: "empty" }, "It used nothing in this time. Usage comes with the operator's records: POST /inbound/cdr/sim.");
  const unit = found.meta.step === 3600 ? "hour" : "day", sum = (type, pick) => found.data.filter((d) => d.type === type).reduce((n, d) => n + pick(d), 0);
  const figures = [["data", "Data per " + unit, (d) => d.bytes, bytes], ["sms", "SMS per " + unit, (d) => d.records, String], ["voice", "Minutes of voice per " + unit, (d) => d.duration / 60, (n) => String(Math.round(n * 10) / 10)]]
    .filter(([type]) => found.data.some((d) => d.type === type)).map(([type, title, pick, format]) => {
      const [times, values] = perStep(found, type, pick);
      const made = chart(title, times, [{ label: title, values, band: true }], { signal, height: 200, format, counts: type === "sms", bytes: type === "data", from: times[0], to: Date.parse(found.meta.to) / 1000 });
      charts.push(made);
      return h("div", { class: "sheet" }, h("h3", null, title + ", " + format(sum(type, pick)) + " in all"), made);
    });
  const rows = found.data.map((d) => [stamp(d.at), d.type, d.records, d.type === "data" ? bytes(d.bytes) : "", d.duration ? Math.round(d.duration) + " s" : ""]).reverse();
  return [h("div", { class: "charts" }, figures), h("details", null, h("summary", null, "As a table"), table("Usage", ["From (UTC)", "Type", "Records#", "Data#", "Duration#"], rows, ""))];
}

function rangeForm(params) {
  const here = { id: params.id, account: params.account }, now = params.from ? "" : params.span || "month";
  const own = h("form", { class: "fields", "aria-label": "Own range", submit: (e) => { e.preventDefault(); go("sims", { ...here, ...valuesOf(e.target) }); } },
    field("from", "From (UTC)", "time", params.from, { required: true }), field("to", "To (UTC)", "time", params.to, { required: true }), h("p", { class: "bar" }, h("button", { type: "submit" }, "Show this range")));
  return h("div", null, h("p", { class: "bar" }, Object.keys(spans).map((name) => button("Last " + name, () => go("sims", { ...here, span: name }), { "aria-pressed": String(name === now) }))),
    h("details", { open: Boolean(params.from) }, h("summary", null, "Own range"), own));
}

function one(main, params, signal) {
  const path = { iccid: params.id }, query = { account: params.account }, charts = [];
  const show = async () => (await call("showSIM", { path, query, signal })).data;
  const range = () => (params.from && params.to ? { from: params.from, to: params.to } : { from: iso(Date.now() - (spans[params.span] || spans.month) * 86400e3), to: iso(Date.now()) });
  const used = section("Usage over time", async () => usage(await call("usageOfSIM", { path, query: { ...query, ...range() }, signal }), charts, signal), { signal, hint: "As the operator's records say, by the time of each record, in UTC." });
  used.insertBefore(rangeForm(params), used.children[1]);
  main.append(h("p", null, link("sims", {}, "← All SIMs")), h("h1", null, "SIM " + params.id), section("About", async () => about(await show()), { signal, every: 10_000 }), used,
    section("By month", async () => {
      const months = (await show()).months.filter((m, i, all) => m.bytes || i >= all.length - 3).reverse();
      return table("Usage by month", ["Month (UTC)", "Used#"], months.map((m) => [m.month, bytes(m.bytes)]), "");
    }, { signal }),
    h("p", { class: "bar" }, link("jobs", { account: params.account }, "Jobs of its account")));
}

export const show = (main, params, signal) => (params.id ? one : list)(main, params, signal);
