// All requests to the gateway.
//
// This table has every operation that the console uses, by its operationId. A test compares it
// with the contract; no other module names a path.

export const api = {
  "getStatus": "GET /admin/status",
  "getTraffic": "GET /admin/traffic",
  "listAccounts": "GET /admin/accounts",
  "addAccount": "POST /admin/accounts",
  "removeAccount": "DELETE /admin/accounts/{account}",
  "adjustCredit": "POST /admin/accounts/{account}/credit",
  "listTokensOfAccounts": "GET /admin/tokens",
  "addToken": "POST /admin/tokens",
  "revokeToken": "DELETE /admin/tokens/{token_id}",
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
  "sendMessage": "POST /v2/sms/send",
  "listCredit": "GET /admin/credit",
  "listBalances": "GET /admin/balances",
  "listRelaysOfAccounts": "GET /admin/relays",
  "showRelay": "GET /admin/relays/{kind}/{relay_id}",
  "explainRelay": "POST /admin/relays/explain",
  "listGeographicActions": "GET /v2/sms-relay/geo/actions",
  "listNumberActions": "GET /v2/sms-relay/vmn/actions",
  "createGeographicRelay": "POST /v2/sms-relay/geo",
  "createNumberRelay": "POST /v2/sms-relay/vmn",
  "deleteGeographicRelay": "DELETE /v2/sms-relay/geo/{relay}",
  "deleteNumberRelay": "DELETE /v2/sms-relay/vmn/{relay}",
  "tryGeographicRelay": "POST /v2/sms-relay/geo/{relay}/try",
  "tryNumberRelay": "POST /v2/sms-relay/vmn/{relay}/try",
  "patchGeographicRelay": "PATCH /v2/sms-relay/geo/{relay}",
  "patchNumberRelay": "PATCH /v2/sms-relay/vmn/{relay}",
  "listRulesOfAccount": "GET /admin/rules",
  "tryRule": "POST /iot/rules/try",
  "createRule": "POST /iot/rules",
  "patchRule": "PATCH /iot/rules/{rule_id}",
  "deleteRule": "DELETE /iot/rules/{rule_id}",
  "listAlarmsOfAccount": "GET /admin/alarms",
  "patchAlarm": "PATCH /iot/alarms/{alarm_id}",
  "muteAlarms": "POST /iot/alarms/mute",
  "unmuteAlarms": "DELETE /iot/alarms/mute",
  "listLocations": "GET /iot/locations",
  "createLocation": "POST /iot/locations",
  "listDevicesOfAccounts": "GET /admin/devices",
  "showDevice": "GET /admin/devices/{device_id}",
  "aggregateReadings": "GET /iot/devices/{device_id}/readings/aggregate",
  "listFrames": "GET /iot/devices/{device_id}/frames",
  "listEventMarkers": "GET /iot/devices/{device_id}/event-markers",
  "createLorawanDevice": "POST /iot/devices/lorawan",
  "createBluetoothDevice": "POST /iot/devices/bluetooth",
  "createOtherDevice": "POST /iot/devices/other",
  "patchDevice": "PATCH /iot/devices/{device_id}",
  "deleteDevice": "DELETE /iot/devices/{device_id}",
  "addEventMarker": "POST /iot/devices/{device_id}/event-markers",
  "listDecodersOfAccounts": "GET /admin/decoders",
  "tryDecoder": "POST /admin/decoders/try",
  "showDecoder": "GET /admin/decoders/{decoder_id}",
  "listDecoderTemplates": "GET /iot/decoders/templates",
  "deleteDecoder": "DELETE /iot/decoders/{decoder_id}",
  "createDecoder": "POST /iot/decoders",
  "patchDecoder": "PATCH /iot/decoders/{decoder_id}",
  "addDecoderSensor": "POST /iot/decoders/{decoder_id}/sensors",
  "deleteDecoderSensor": "DELETE /iot/decoders/{decoder_id}/sensors/{key}",
  "listSIMsOfAccounts": "GET /admin/sims",
  "showSIM": "GET /admin/sims/{iccid}",
  "usageOfSIM": "GET /admin/sims/{iccid}/usage",
  "activateSIM": "POST /v3/mno/{iccid}/activate",
  "suspendSIM": "POST /v3/mno/{iccid}/suspend",
  "unsuspendSIM": "POST /v3/mno/{iccid}/unsuspend",
  "terminateSIM": "POST /v3/mno/{iccid}/terminate",
  "setUsageLimit": "PUT /v3/mno/{iccid}/usage-limit",
  "reassignSIMs": "POST /v3/mno/sim/bulk-reassign",
  "listSubscribers": "GET /v3/mno/subscriber",
  "registerSubscriber": "POST /v3/mno/subscriber/register",
  "listJobsOfAccounts": "GET /admin/jobs",
  "listLedgersOfAccounts": "GET /admin/ledgers",
  "listEntriesOfLedger": "GET /admin/ledgers/{ledger_id}/entries",
  "listTokensOfLedger": "GET /admin/ledgers/{ledger_id}/tokens",
  "generateToken": "POST /ledgers/{ledgerId}/tokens",
  "claimToken": "POST /ledgers/tokens/claim",
  "appendMetadata": "POST /ledgers/tokens/metadata",
  "tokenJob": "GET /ledgers/jobs/{jobId}",
  "showLedgerToken": "GET /admin/ledger-tokens/{token_id}",
  "listSensorTypes": "GET /admin/sensor-types",
  "addSensorType": "POST /admin/sensor-types",
  "getInventoryDrift": "GET /admin/inventory/drift",
  "getInventory": "GET /admin/inventory"
};

// credentials has the headers of a request and the reaction to their refusal; session.js sets both.
let credentials = { headers: () => ({}), refused: () => {} };
export const signWith = (signer) => {
  credentials = signer;
};

// remedies tell the reader what to do about a status.
const remedies = {
  403: "Your role may not do this, or the record belongs to another account.",
  404: "The record does not exist any more. Reload the list.",
  405: "This gateway does not offer the operation. It may run an older version than this page.",
  503: "A back end does not answer at the moment; System shows which. Nothing was changed."
};

// fieldsOf returns the errors by field. The messaging API lists the fields in one text and gives
// the reason in the message.
function fieldsOf(data) {
  const errors = (data && data.errors) || {};
  if (typeof errors !== "string") return errors;
  return Object.fromEntries(errors.split(", ").map((name) => [name, data.message]));
}

// problemOf returns the error of an unsuccessful answer. Its message is for the reader; brief is the
// first line, fields has the errors by field.
function problemOf(status, data) {
  const message = data && data.message ? data.message : "";
  const brief =
    message && message !== "Not found." ? message : remedies[status] || "The gateway answered " + status + ".";
  const fields = fieldsOf(data),
    lines = [brief];
  for (const [name, problems] of Object.entries(fields)) lines.push(name + ": " + [problems].flat().join("; "));
  if (status === 503 && brief !== remedies[503]) lines.push(remedies[503]);
  return Object.assign(new Error(lines.join("\n")), { status, brief, fields });
}

export const unreachable = "The gateway does not answer. Is it running, and can this machine reach it?";

// call requests an operation of the table. as is the account to act as; operations outside the
// admin API need it. The message of an error is for the reader.
export async function call(name, { path = {}, query = {}, body, accept = [], as, signal } = {}) {
  const [method, template] = api[name].split(" ");
  const asked = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== "" && value !== undefined)
  ).toString();
  const url = template.replace(/\{(\w+)\}/g, (_, key) => encodeURIComponent(path[key])) + (asked && "?" + asked);
  const headers = as === undefined ? {} : { "X-Account": String(as) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer, text;
  try {
    Object.assign(headers, credentials.headers());
    answer = await fetch(url, {
      method,
      headers,
      signal,
      cache: "no-store",
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body)
    });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(unreachable);
  }
  const isJSON = (answer.headers.get("Content-Type") || "").startsWith("application/json");
  const data = isJSON && text ? JSON.parse(text) : text;
  if (answer.status === 401 && !accept.includes(401)) credentials.refused();
  if (!answer.ok && !accept.includes(answer.status)) throw problemOf(answer.status, data);
  return data;
}

// all reads the pages of a list and returns at most limit records.
export async function all(name, { query = {}, limit = 1000, ...options } = {}) {
  const records = [];
  for (let cursor = ""; ;) {
    const found = await call(name, { ...options, query: { ...query, cursor, limit: Math.min(limit, 1000) } });
    records.push(...found.data);
    cursor = found.meta && found.meta.next;
    if (!cursor || records.length >= limit) return records;
  }
}
