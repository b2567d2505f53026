// What the lists are filtered by: the words there are, or a kind of input. A test
// compares this table with the parameters of the contract, both ways.

export const filters = {
  "listEvents": {
    "state": ["done", "quarantined", "unrouted", "pending"], "kind": ["uplink", "sms", "receipt", "cdr"],
    "account": "text", "source": "text", "device": "text", "from": "time", "to": "time", "q": "text"
  },
  "listDeliveries": {
    "state": ["queued", "retrying", "delivered", "simulated", "dead"], "kind": ["relay", "receipt", "callback", "notice", "rule"],
    "waits_for": ["breaker", "turn"], "account": "text", "relay": "text", "number": "text", "target": "text", "reason": "text",
    "from": "time", "to": "time", "q": "text"
  },
  "listMessages": {
    "account": "text",
    "state": ["pending", "sending", "accepted", "buffered", "delivered", "undelivered", "rejected", "unknown", "removed"],
    "number": "text"
  },
  "listRulesOfAccount": { "account": "text" },
  "listRelaysOfAccounts": { "account": "text", "kind": ["geo", "vmn"], "q": "text" },
  "listSIMsOfAccounts": { "q": "text", "account": "text", "state": ["pending", "active", "suspended", "terminated"], "pool": "text" },
  "listJobsOfAccounts": {
    "account": "text", "state": ["queued", "processing", "completed", "failed"],
    "kind": [
      "sim.activate_sim", "sim.suspend_sim", "sim.unsuspend_sim", "sim.terminate_sim", "sim.add_service", "sim.remove_service", "sim.bulk_reassign", "sim.cdr_report",
      "sim.usage_report", "usage.block", "sip.cdr", "token.generate", "token.claim", "token.metadata"
    ]
  },
  "listCredit": { "account": "text" },
  "listAlarmsOfAccount": {
    "account": "text", "state": ["raised", "cleared"], "rule_id": "text", "device_id": "text", "from": "time", "to": "time"
  },
  "listAudit": {
    "actor": "text", "operation": "text", "target": "text", "account": "text", "outcome": ["started", "done", "refused", "failed"], "from": "time", "to": "time"
  }
};

export const labels = {
  state: "State", kind: "Kind", account: "Account (name or id)", source: "Source", device: "Device", from: "From (UTC)", to: "To (UTC)", q: "Holds the text",
  waits_for: "Waits for", relay: "Relay", number: "Originator or destination", target: "Target", reason: "Reason",
  pool: "Pool (its id)", rule_id: "Rule", device_id: "Device (its id)",
  actor: "Who (a user, or admin token)", operation: "Operation", outcome: "Outcome"
};
