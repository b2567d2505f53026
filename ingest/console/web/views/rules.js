// Rules of one or all accounts. One opens to be changed and tried.

import { account } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, state, when } from "../core/dom.js";
import { actionWord } from "../core/filters.js";
import { cut, plural } from "../core/format.js";
import { listing } from "../core/list.js";
import { may, mayChange } from "../core/session.js";
import { loadScopes, scopeText } from "./pickers.js";
import { conditionText, ruleSwitch, showRule } from "./rule.js";

const actionsOf = (r) => [...new Set(r.actions.map((a) => actionWord(a.action)))].join(", ");
const conditionOf = (r) => r.when || (r.on === "silent" ? "silent for " + r.silent_for : "always");

function list(main, params, signal) {
  let current = null;
  const newest = new Map(); // the newest alarm of each rule
  return listing({
    view: "rules",
    op: "listRulesOfAccount",
    title: "Rules",
    intro: "Rules raise alarms or forward readings.",
    empty: () => [
      h("p", null, "No rules yet."),
      mayChange() &&
        h(
          "p",
          { class: "bar" },
          button("Add rule", () => go("rules", { id: "new" }), { class: "main" })
        )
    ],
    add: () =>
      mayChange() && button("Add rule", () => go("rules", { id: "new", account: params.account }), { class: "main" }),
    key: (r) => r.account + "-" + r.id,
    load: async (query, stop) => {
      const alarms = await call("listAlarmsOfAccount", {
        query: { account: query.account, limit: 500 },
        signal: stop
      }).catch(() => ({ data: [] }));
      for (const a of alarms.data)
        if (!newest.has(a.account + "-" + a.rule_id) || newest.get(a.account + "-" + a.rule_id) < a.raised_at)
          newest.set(a.account + "-" + a.rule_id, a.raised_at);
      const found = await call("listRulesOfAccount", { query, signal: stop });
      await loadScopes(found.data, stop);
      return found;
    },
    columns: [
      {
        head: "Rule",
        value: (r) => r.name || r.id,
        cell: (r) => link("rules", { id: r.id, account: String(r.account) }, r.name || r.id)
      },
      {
        head: "State",
        value: (r) => (r.enabled ? "enabled" : "disabled"),
        cell: (r) => ruleSwitch(r, current.said, current.again)
      },
      { head: "Condition", value: conditionOf, cell: conditionText },
      { head: "Devices", value: scopeText, cell: (r) => cut(scopeText(r), 40), rest: true },
      { head: "Actions", value: actionsOf, cell: actionsOf, rest: true },
      {
        head: "Last raised",
        value: (r) => newest.get(r.account + "-" + r.id) || "",
        cell: (r) => when(newest.get(r.account + "-" + r.id))
      },
      { head: "Account", value: (r) => r.account, cell: (r) => account(r.account), rest: true },
      {
        head: "Failures",
        value: (r) => r.failures.count || "",
        cell: (r) =>
          r.failures.count > 0 && [state("fails", plural(r.failures.count, "failure")), " ", r.failures.last],
        rest: true
      }
    ],
    actions: (ctx) => {
      current = ctx;
      return [may("tryRule") && link("tryrule", { account: params.account }, "Test a rule")];
    }
  })(main, params, signal);
}

export const show = (main, params, signal) => (params.id ? showRule : list)(main, params, signal);
