// The operator's console. This is the table of its views; doc.go says how to add one.

import { start } from "./core/router.js";

// needs is an operation that the view cannot do without: a reader who may not use it is not
// offered the view, and at its address finds the refusal, or else that of the operation. Views
// without a group are reached from others; under names the entry of the navigation that is marked
// meanwhile.
start([
  { name: "now", title: "Overview", group: "Operate", needs: "getStatus", load: () => import("./views/now.js") },
  { name: "events", title: "Events", group: "Operate", needs: "listEvents", load: () => import("./views/events.js") },
  {
    name: "deliveries",
    title: "Deliveries",
    group: "Operate",
    needs: "listDeliveries",
    load: () => import("./views/deliveries.js")
  },
  {
    name: "jobs",
    title: "Jobs",
    group: "Operate",
    needs: "listJobsOfAccounts",
    load: () => import("./views/jobs.js")
  },
  { name: "system", title: "System", group: "Operate", needs: "getStatus", load: () => import("./views/system.js") },
  {
    name: "devices",
    title: "Devices",
    group: "Devices",
    needs: "listDevicesOfAccounts",
    load: () => import("./views/devices.js")
  },
  {
    name: "alarms",
    title: "Alarms",
    group: "Devices",
    needs: "listAlarmsOfAccount",
    load: () => import("./views/alarms.js")
  },
  {
    name: "rules",
    title: "Rules",
    group: "Devices",
    needs: "listRulesOfAccount",
    load: () => import("./views/rules.js")
  },
  {
    name: "decoders",
    title: "Decoders",
    group: "Devices",
    needs: "listDecodersOfAccounts",
    load: () => import("./views/decoders.js")
  },
  {
    name: "messages",
    title: "Messages",
    group: "SMS",
    needs: "listMessages",
    load: () => import("./views/messages.js")
  },
  {
    name: "relays",
    title: "Relays",
    group: "SMS",
    needs: "listRelaysOfAccounts",
    load: () => import("./views/relays.js")
  },
  {
    name: "sims",
    title: "SIMs",
    group: "SIMs and ledgers",
    needs: "listSIMsOfAccounts",
    load: () => import("./views/sims.js")
  },
  {
    name: "ledgers",
    title: "Ledgers",
    group: "SIMs and ledgers",
    needs: "listLedgersOfAccounts",
    load: () => import("./views/ledgers.js")
  },
  {
    name: "accounts",
    title: "Accounts",
    group: "Set-up",
    needs: "listBalances",
    load: () => import("./views/accounts.js")
  },
  { name: "users", title: "Users", group: "Set-up", needs: "listUsers", load: () => import("./views/users.js") },
  {
    name: "inventory",
    title: "Inventory",
    group: "Set-up",
    needs: "getInventory",
    load: () => import("./views/inventory.js")
  },
  { name: "audit", title: "Audit log", group: "Set-up", needs: "listAudit", load: () => import("./views/audit.js") },
  {
    name: "password",
    title: "Password",
    group: "Set-up",
    needs: "setOwnPassword",
    refusal: "The admin token and users of a sign-in provider have no password here.",
    load: () => import("./views/password.js")
  },
  {
    name: "start",
    title: "First steps",
    under: "accounts",
    needs: "addAccount",
    load: () => import("./views/start.js")
  },
  { name: "trace", title: "Timeline", under: "events", needs: "getEvent", load: () => import("./views/trace.js") },
  {
    name: "try",
    title: "Test a payload",
    under: "decoders",
    needs: "tryDecoder",
    load: () => import("./views/try.js")
  },
  {
    name: "tryrule",
    title: "Test a rule",
    under: "rules",
    needs: "tryRule",
    load: () => import("./views/tryrule.js")
  },
  {
    name: "explain",
    title: "Test a relay",
    under: "relays",
    needs: "explainRelay",
    load: () => import("./views/explain.js")
  }
]);
