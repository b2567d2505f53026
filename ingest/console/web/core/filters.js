// The filters of the lists: the words to choose from, a kind of input, or the kind of record to
// pick. A test checks that this table and the contract have the same parameters.

export const filters = {
  "listEvents": {
    "q": "text",
    "state": ["done", "quarantined", "unrouted", "pending"],
    "kind": ["uplink", "sms", "receipt", "cdr"],
    "account": "account",
    "source": "text",
    "device": "text",
    "number": "text",
    "from": "time",
    "to": "time"
  },
  "listDeliveries": {
    "q": "text",
    "state": ["queued", "retrying", "delivered", "simulated", "dead"],
    "kind": ["relay", "receipt", "callback", "notice", "rule"],
    "account": "account",
    "waits_for": ["breaker", "turn"],
    "relay": "text",
    "number": "text",
    "target": "text",
    "reason": "text",
    "from": "time",
    "to": "time"
  },
  "listMessages": {
    "number": "text",
    "direction": ["in", "out"],
    "state": [
      "done",
      "quarantined",
      "unrouted",
      "pending",
      "sending",
      "accepted",
      "buffered",
      "delivered",
      "undelivered",
      "rejected",
      "unknown",
      "removed"
    ],
    "account": "account"
  },
  "listDevicesOfAccounts": {
    "q": "text",
    "alarmed": ["true"],
    "order": ["account", "silent"],
    "account": "account",
    "decoder": "decoder"
  },
  "listDecodersOfAccounts": { "account": "account" },
  "listRulesOfAccount": { "account": "account" },
  "listRelaysOfAccounts": { "q": "text", "kind": ["geo", "vmn"], "account": "account" },
  "listSIMsOfAccounts": {
    "q": "text",
    "state": ["pending", "active", "suspended", "terminated"],
    "account": "account",
    "pool": "text"
  },
  "listJobsOfAccounts": {
    "state": ["queued", "processing", "completed", "failed"],
    "account": "account",
    "kind": [
      "sim.activate_sim",
      "sim.suspend_sim",
      "sim.unsuspend_sim",
      "sim.terminate_sim",
      "sim.add_service",
      "sim.remove_service",
      "sim.bulk_reassign",
      "sim.cdr_report",
      "sim.usage_report",
      "usage.block",
      "sip.cdr",
      "token.generate",
      "token.claim",
      "token.metadata"
    ]
  },
  "listCredit": { "account": "account" },
  "listAlarmsOfAccount": {
    "state": ["raised", "cleared"],
    "account": "account",
    "rule_id": "rule",
    "device_id": "device",
    "from": "time",
    "to": "time"
  },
  "listAudit": {
    "actor": "text",
    "outcome": ["started", "done", "refused", "failed"],
    "account": "account",
    "operation": "operation",
    "target": "text",
    "from": "time",
    "to": "time"
  }
};

export const labels = {
  state: "State",
  kind: "Kind",
  account: "Account",
  source: "Source",
  device: "Device (identifier)",
  from: "From (UTC)",
  to: "To (UTC)",
  q: "Search",
  "listEvents.q": "Text of the event",
  "listDeliveries.q": "Text of the delivery",
  "listDevicesOfAccounts.q": "Name or identifier",
  "listRelaysOfAccounts.q": "Number, action or condition",
  "listSIMsOfAccounts.q": "ICCID, number or IMSI",
  waits_for: "Waits for",
  relay: "Relay or rule (ID)",
  number: "Phone number (whole)",
  target: "Target",
  reason: "Reason",
  pool: "Pool",
  rule_id: "Rule",
  device_id: "Device",
  decoder: "Decoder",
  actor: "User",
  operation: "Operation",
  outcome: "Outcome",
  direction: "Direction",
  alarmed: "Alarms",
  heard: "State",
  order: "Order"
};

// actionWords name the actions of relays and rules.
const actionWords = {
  http_get: "HTTP, fields in URL",
  http_post: "HTTP, fields in body",
  email: "Email",
  sms: "SMS",
  mvno: "To the SIM",
  black_hole: "Discard",
  inactive: "Discard",
  dialogue_get: "X-E3, fields in URL",
  dialogue_post: "X-E3, fields in body",
  ms_outlook: "Outlook email",
  desktopsms: "Inbox",
  inbound_gw: "Another gateway"
};
export const actionWord = (action) => actionWords[action] || action;

// deliveryKinds name the kinds of deliveries.
export const deliveryKinds = {
  relay: "Inbound SMS",
  receipt: "Delivery report",
  callback: "Callback",
  notice: "Notice",
  rule: "Rule"
};

// jobWords name the kinds of jobs.
export const jobWords = {
  "sim.activate_sim": "Activate a SIM",
  "sim.suspend_sim": "Suspend a SIM",
  "sim.unsuspend_sim": "Unsuspend a SIM",
  "sim.terminate_sim": "Terminate a SIM",
  "sim.add_service": "Add a service to a SIM",
  "sim.remove_service": "Remove a service from a SIM",
  "sim.bulk_reassign": "Assign SIMs to a subscriber",
  "sim.cdr_report": "File of usage records",
  "sim.usage_report": "Usage report",
  "usage.block": "Suspend a SIM at its limit",
  "sip.cdr": "Archive of call records",
  "token.generate": "Generate a token",
  "token.claim": "Claim tokens",
  "token.metadata": "Append metadata to a token"
};

// defaults are the options that apply without a choice. The other filters then select all.
export const defaults = { order: "silent" };

// optionTexts replace the words of the API in the options of filters, for all filters, for
// "filter.word" or for "operation.word". Other words only get a capital letter.
export const optionTexts = {
  "state.done": "Processed",
  true: "Raised only",
  dead: "Failed",
  geo: "Prefix",
  vmn: "Virtual number",
  "heard.silent": "Silent only",
  silent: "Longest silent first",
  account: "By account",
  breaker: "A paused endpoint",
  turn: "An ordered endpoint",
  relay: deliveryKinds.relay,
  uplink: "Frame",
  sms: "Inbound SMS",
  receipt: "Delivery receipt",
  "listDeliveries.receipt": deliveryKinds.receipt,
  "direction.in": "Received",
  "direction.out": "Sent",
  cdr: "Call and usage records",
  ...jobWords
};

// foremost filters stand in one line above a list; the other filters fold out.
export const foremost = [
  "q",
  "number",
  "actor",
  "state",
  "heard",
  "kind",
  "direction",
  "alarmed",
  "account",
  "outcome",
  "rule_id",
  "order"
];
