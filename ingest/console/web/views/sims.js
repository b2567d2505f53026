// SIMs of one or all accounts, with their usage; one SIM has a page with charts.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { chart } from "../core/chart.js";
import { h, pairs, stamp, state, table, told } from "../core/dom.js";
import { bytes, capital, iso, span } from "../core/format.js";
import { listing } from "../core/list.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";
import { subscribersOf } from "./pickers.js";
import { rangeForm } from "./ranges.js";
import { simActions } from "./simactions.js";

// spans are the ranges of usage: [days, text].
const spans = { day: [1, "24 h"], week: [7, "7 days"], month: [30, "30 days"], year: [365, "365 days"] };
const simLink = (s) => link("sims", { id: s.iccid, account: String(s.account) }, s.iccid);
const changing = (s) => s.requested_state !== s.state && [" ", state("pending", "becomes " + s.requested_state)];

const servicesOf = (s) => s.services.map((x) => x.toUpperCase()).join(", ");

// share writes the used share of a limit: "1.2 MB of 5 MB (24 %)". Above ten times the limit
// the factor stands for the percentage.
function share(used, limit) {
  if (!limit.monthly) return bytes(used);
  const percent = Math.round((used / limit.monthly) * 100),
    text = percent > 1000 ? Math.round(percent / 100) + "\u00a0×" : percent + "\u00a0%";
  return [
    bytes(used) + " of " + bytes(limit.monthly) + " (" + text + ")",
    percent >= 100
      ? [" ", state("limit reached")]
      : limit.warning && used >= limit.warning
        ? [" ", state("warning")]
        : ""
  ];
}

function list(main, params, signal) {
  let current = null;
  return listing({
    view: "sims",
    op: "listSIMsOfAccounts",
    title: "SIMs",
    intro: "SIM cards, with their usage of this month (UTC).",
    key: (s) => s.iccid,
    empty: (filter) =>
      Object.keys(filter).length
        ? "No SIMs match the filters."
        : "No SIMs yet. Declare them in the inventory (sims:).",
    columns: [
      { head: "SIM (ICCID)", value: (s) => s.iccid, cell: simLink },
      { head: "State", value: (s) => s.state, cell: (s) => [state(s.state), changing(s)] },
      {
        head: "Usage",
        value: (s) => s.month_bytes,
        cell: (s) => share(s.month_bytes, s.limit),
        number: true
      },
      {
        head: "Number",
        value: (s) => s.msisdn || s.imsi,
        cell: (s) => [s.msisdn, s.imsi && h("div", { class: "hint" }, s.imsi)]
      },
      { head: "IMSI", value: (s) => s.imsi, exported: true },
      {
        head: "Services",
        value: (s) => s.services.join(" "),
        cell: servicesOf,
        rest: true
      },
      {
        head: "Pool",
        value: (s) => s.pool_id,
        rest: true,
        cell: (s) =>
          s.pool_id && link("sims", { pool: s.pool_id, account: String(s.account) }, s.pool_id.slice(0, 12))
      },
      { head: "Account", value: (s) => s.account_name, cell: (s) => account(s.account), rest: true },
      { head: "Change", cell: (s) => simActions(s, current.said, current.again) }
    ],
    actions: (ctx) => {
      current = ctx;
      return [];
    }
  })(main, params, signal);
}

const caps = {
  none: "nothing",
  notify: "recipients are notified",
  block: "recipients are notified and the SIM is suspended"
};
const limitText = (l) =>
  l.monthly
    ? bytes(l.monthly) + (l.warning ? ", warning at " + bytes(l.warning) : "") + "; at the limit " + caps[l.cap]
    : "No limit";

// about shows a SIM. subscribers is [[id, name]].
function about(s, subscribers) {
  return h(
    "div",
    { class: "sheet" },
    pairs([
      ["State", [state(s.state), changing(s)]],
      ["Used this month", share(s.month_bytes, s.limit)],
      ["Limit", limitText(s.limit)],
      ["Number", s.msisdn],
      ["IMSI", s.imsi],
      ["Account", account(s.account)],
      ["Services", servicesOf(s) || "None"],
      ["Subscriber", (subscribers.find(([id]) => String(id) === s.subscriber_id) || [])[1] || s.subscriber_id],
      ["Change in progress", s.job_id && link("jobs", { account: String(s.account), open: s.job_id }, "Job")],
      ["Limit notices to", s.recipients.join(", ") || "Nobody"],
      ["Pool", s.pool && link("sims", { pool: s.pool.id, account: String(s.account) }, s.pool.name || s.pool.id)],
      ["Usage of the pool", s.pool && share(s.pool.month_bytes, s.pool.limit)],
      ["Limit of the pool", s.pool && limitText(s.pool.limit)]
    ])
  );
}

// perStep fills the steps without usage with zeros.
function perStep(found, type, amountOf) {
  const { from, to, step } = found.meta;
  const amounts = new Map(
    found.data.filter((d) => d.type === type).map((d) => [Date.parse(d.at) / 1000, amountOf(d)])
  );
  const times = [],
    values = [];
  for (let t = Date.parse(from) / 1000; t < Date.parse(to) / 1000; t += step) {
    times.push(t);
    values.push(amounts.get(t) || 0);
  }
  return [times, values];
}

function usage(found, charts, signal) {
  charts.splice(0).forEach((made) => made.end());
  if (!found.data.length) return h("p", { class: "empty" }, "No usage in this period.");
  const unit = found.meta.step === 3600 ? "hour" : "day";
  const sum = (type, amountOf) => found.data.filter((d) => d.type === type).reduce((n, d) => n + amountOf(d), 0);
  const kinds = [
    ["data", "Data", (d) => d.bytes, bytes],
    ["sms", "SMS", (d) => d.records, String],
    ["voice", "Minutes of voice", (d) => d.duration / 60, (n) => String(Math.round(n * 10) / 10)]
  ];
  const figures = kinds
    .filter(([type]) => found.data.some((d) => d.type === type))
    .map(([type, label, amountOf, format]) => {
      const title = label + " per " + unit,
        [times, values] = perStep(found, type, amountOf),
        to = Date.parse(found.meta.to) / 1000;
      const made = chart(title, times, [{ label, values, band: true }], {
        signal,
        height: 200,
        format,
        counts: type !== "voice",
        from: times[0],
        to
      });
      charts.push(made);
      return h(
        "div",
        { class: "sheet" },
        h("h3", null, title + ", " + format(sum(type, amountOf)) + " in total"),
        made
      );
    });
  const rows = found.data
    .map((d) => [
      stamp(d.at),
      d.type === "sms" ? "SMS" : capital(d.type),
      d.records,
      d.type === "data" ? bytes(d.bytes) : "",
      d.duration ? span(d.duration) : ""
    ])
    .reverse();
  return [
    h("div", { class: "charts" }, figures),
    h(
      "details",
      null,
      h("summary", null, "Usage as a table"),
      table("Usage", ["From (UTC)", "Type", "Records#", "Data#", "Duration#"], rows, "")
    )
  ];
}

function one(main, params, signal) {
  const path = { iccid: params.id },
    query = { account: params.account },
    charts = [],
    note = told();
  let subscribers = null;
  const load = async () => (await call("showSIM", { path, query, signal })).data;
  const range = () =>
    params.from && params.to
      ? { from: params.from, to: params.to }
      : { from: iso(Date.now() - (spans[params.span] || spans.month)[0] * 86400e3), to: iso(Date.now()) };
  const top = section(
    "",
    async () => {
      const s = await load();
      if (s.subscriber_id && !subscribers && may("listSubscribers"))
        subscribers = await subscribersOf(String(s.account)).catch(() => null);
      return [about(s, subscribers || []), simActions(s, note, () => top.again(), { full: true })];
    },
    { signal, every: 5_000 }
  );
  main.append(
    h("p", { class: "back" }, link("sims", {}, "← SIMs")),
    h("h1", null, "SIM " + params.id),
    h(
      "nav",
      { class: "bar spaced", "aria-label": "Of this SIM" },
      link("jobs", { account: params.account }, "Jobs of the account")
    ),
    note,
    top,
    h("h2", null, "Usage"),
    rangeForm({
      view: "sims",
      params,
      spans: Object.entries(spans).map(([name, [, text]]) => [name, text]),
      chosen: params.from ? "" : params.span || "month",
      range: range()
    }),
    section(
      "",
      async () => usage(await call("usageOfSIM", { path, query: { ...query, ...range() }, signal }), charts, signal),
      { signal, hint: "Source: the operator's usage records (UTC)." }
    ),
    section(
      "By month",
      async () => {
        const months = (await load()).months.filter((m, i, list) => m.bytes || i >= list.length - 3).reverse();
        const rows = months.map((m) => [m.month, bytes(m.bytes)]);
        return h(
          "div",
          { class: "slim" },
          table("Usage by month", ["Month (UTC)", "Data#"], rows, "", { compact: true })
        );
      },
      { signal }
    )
  );
}

export const show = (main, params, signal) => (params.id ? one : list)(main, params, signal);
