// The operator's console: one page over the admin API. This is the table of its
// views; doc.go says how to add one.

import { start } from "./core/router.js";

start([
  { name: "now", title: "Overview", group: "Operate", load: () => import("./views/now.js") },
  { name: "events", title: "Events", group: "Operate", load: () => import("./views/events.js") },
  { name: "deliveries", title: "Deliveries", group: "Operate", load: () => import("./views/deliveries.js") },
  { name: "trace", title: "Trace", group: "Operate", load: () => import("./views/trace.js") },
  { name: "messages", title: "Messages", group: "SMS", load: () => import("./views/messages.js") },
  { name: "relays", title: "Relays", group: "SMS", load: () => import("./views/relays.js") },
  { name: "explain", title: "Explain", group: "SMS", load: () => import("./views/explain.js") },
  { name: "devices", title: "Devices", group: "Devices", load: () => import("./views/devices.js") },
  { name: "decoders", title: "Decoders", group: "Devices", load: () => import("./views/decoders.js") },
  { name: "rules", title: "Rules", group: "Devices", load: () => import("./views/rules.js") },
  { name: "alarms", title: "Alarms", group: "Devices", load: () => import("./views/alarms.js") },
  { name: "try", title: "Try", group: "Devices", load: () => import("./views/try.js") },
  { name: "tryrule", title: "Try a rule", group: "Devices", load: () => import("./views/tryrule.js") },
  { name: "inventory", title: "Inventory", group: "Set-up", load: () => import("./views/inventory.js") },
  { name: "users", title: "Users", group: "Set-up", load: () => import("./views/users.js") },
  { name: "audit", title: "Audit log", group: "Set-up", load: () => import("./views/audit.js") },
]);
