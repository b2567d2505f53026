// The operator's console: one page over the admin API. This is the table of its
// views; doc.go says how to add one.

import { start } from "./core/router.js";

start([
  { name: "now", title: "Now", load: () => import("./views/now.js") },
  { name: "events", title: "Events", load: () => import("./views/events.js") },
  { name: "deliveries", title: "Deliveries", load: () => import("./views/deliveries.js") },
  { name: "messages", title: "Messages", load: () => import("./views/messages.js") },
  { name: "rules", title: "Rules", load: () => import("./views/rules.js") },
  { name: "alarms", title: "Alarms", load: () => import("./views/alarms.js") },
  { name: "trace", title: "Trace", load: () => import("./views/trace.js") },
  { name: "explain", title: "Explain", load: () => import("./views/explain.js") },
  { name: "try", title: "Try", load: () => import("./views/try.js") },
  { name: "tryrule", title: "Try a rule", load: () => import("./views/tryrule.js") },
  { name: "inventory", title: "Inventory", load: () => import("./views/inventory.js") },
]);
