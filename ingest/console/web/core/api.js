// The one place that asks the gateway.
//
// Every operation that the console asks for stands in this table under its
// operationId. A test compares it with the contract, and nothing else names a path.

export const api = {
  "getStatus": "GET /admin/status",
  "getTraffic": "GET /admin/traffic",
  "listAccounts": "GET /admin/accounts",
  "signIn": "POST /admin/session",
  "showSession": "GET /admin/session",
  "signOut": "DELETE /admin/session",
  "startProviderSignIn": "GET /admin/oidc/start",
  "showProvider": "GET /admin/oidc",
  "setOwnPassword": "PUT /admin/session/password",
  "listUsers": "GET /admin/users",
  "addUser": "POST /admin/users",
  "changeUser": "PATCH /admin/users/{name}",
  "removeUser": "DELETE /admin/users/{name}",
  "listAudit": "GET /admin/audit",
  "listBreakers": "GET /admin/breakers",
  "closeBreaker": "DELETE /admin/breakers/{endpoint}",
  "listEvents": "GET /admin/events",
  "getEvent": "GET /admin/events/{event}",
  "replayEvents": "POST /admin/events/replay",
  "listDeliveries": "GET /admin/deliveries",
  "replayDeliveries": "POST /admin/deliveries/replay",
  "listMessages": "GET /admin/messages",
  "resendMessages": "POST /admin/messages/resend",
  "listCredit": "GET /admin/credit",
  "listRelaysOfAccounts": "GET /admin/relays",
  "showRelay": "GET /admin/relays/{kind}/{relay_id}",
  "changeRelay": "PATCH /admin/relays/{kind}/{relay_id}",
  "explainRelay": "POST /admin/relays/explain",
  "listRulesOfAccount": "GET /admin/rules",
  "tryRuleOfAccount": "POST /admin/rules/try",
  "listAlarmsOfAccount": "GET /admin/alarms",
  "acknowledgeAlarm": "PATCH /admin/alarms/{alarm_id}",
  "listDevicesOfAccounts": "GET /admin/devices",
  "showDevice": "GET /admin/devices/{device_id}",
  "aggregateDeviceOfAccount": "GET /admin/devices/{device_id}/readings/aggregate",
  "listFramesOfDevice": "GET /admin/devices/{device_id}/frames",
  "listMarkersOfDevice": "GET /admin/devices/{device_id}/markers",
  "listDecodersOfAccounts": "GET /admin/decoders",
  "changeDecoder": "PATCH /admin/decoders/{decoder_id}",
  "tryDecoder": "POST /admin/decoders/try",
  "showDecoder": "GET /admin/decoders/{decoder_id}",
  "listSIMsOfAccounts": "GET /admin/sims",
  "showSIM": "GET /admin/sims/{iccid}",
  "usageOfSIM": "GET /admin/sims/{iccid}/usage",
  "listJobsOfAccounts": "GET /admin/jobs",
  "listLedgersOfAccounts": "GET /admin/ledgers",
  "listEntriesOfLedger": "GET /admin/ledgers/{ledger_id}/entries",
  "showLedgerToken": "GET /admin/ledger-tokens/{token_id}",
  "listBalances": "GET /admin/balances",
  "getInventory": "GET /admin/inventory"
};

// The headers that sign a request in, and what to do when the gateway refuses
// them; session.js sets both.
let credentials = { headers: () => ({}), refused: () => {} };
export const signWith = (given) => { credentials = given; };

// words says what an answer that is no success means.
function words(status, data) {
  const lines = [data && data.message ? data.message : "The gateway answered " + status + "."];
  for (const [name, problems] of Object.entries((data && data.errors) || {})) lines.push(name + ": " + problems.join("; "));
  if (status === 503) lines.push("What this needs does not answer at the moment; the overview shows what is down. Nothing was changed.");
  return lines.join("\n");
}

// call asks for an operation of the table. An error's message is for the reader.
export async function call(name, { path = {}, query = {}, body, accept = [], signal } = {}) {
  const [method, template] = api[name].split(" ");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined)).toString();
  const url = template.replace(/\{(\w+)\}/g, (_, key) => encodeURIComponent(path[key])) + (asked && "?" + asked);
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer, text;
  try {
    Object.assign(headers, credentials.headers());
    answer = await fetch(url, { method, headers, signal, cache: "no-store", credentials: "same-origin", body: body === undefined ? undefined : JSON.stringify(body) });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The gateway does not answer. Is it running, and can this machine reach it?");
  }
  const data = (answer.headers.get("Content-Type") || "").startsWith("application/json") && text ? JSON.parse(text) : text;
  if (answer.status === 401 && !accept.includes(401)) credentials.refused();
  if (!answer.ok && !accept.includes(answer.status)) {
    throw Object.assign(new Error(words(answer.status, data)), { status: answer.status });
  }
  return data;
}
