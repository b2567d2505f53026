// System: back ends, gateways, carriers, journal and queue of this gateway.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { h, long, stamp, state, table, when } from "../core/dom.js";
import { bytes, capital, clock } from "../core/format.js";
import { section } from "../core/section.js";

const simulates = (note) => /simulat/.test(note);
const since = (at) => when(at);

// traffic names what the journals hold.
const traffic = {
  uplink: "Frames",
  sms: "Inbound SMS",
  receipt: "Delivery receipts",
  cdr: "Call and usage records"
};

// purposes are the titles of back ends, by their names in the API.
const purposes = {
  records: "Database",
  queue: "Queue",
  readings: "Readings",
  mail: "Outgoing email",
  lookup: "Number lookups",
  clock: "Clock of this machine",
  operator: "SIM operator",
  gateways: "Gateways on this database",
  ledgers: "Ledgers and their keys"
};

// titleOf is the title of a back end: "Database", "Journal: Frames", "Carrier simulator".
function titleOf(b) {
  const [kind, name] = b.name.split(" ");
  if (kind === "journal") return "Journal: " + (traffic[name] || name);
  return purposes[b.name] || capital(b.name);
}

// outage names the back ends that are down, since when, and the effect; null if none is down.
export function outage(status) {
  const down = status.backends.filter((b) => b.status === "down");
  if (down.length === 0) return null;
  const line = (b) =>
    h(
      "p",
      null,
      h("b", null, titleOf(b)),
      " (" + [b.name, b.note].filter(Boolean).join(", ") + ") is down since ",
      stamp(b.since),
      " UTC, ",
      when(b.since),
      ": ",
      b.error
    );
  return h(
    "div",
    { class: "wrong outage", role: "alert" },
    down.map(line),
    !status.ready &&
      h(
        "p",
        null,
        "The gateway goes on accepting: what arrives is safe in its journal and is processed later. ",
        link("events", {}, "Events"),
        " shows the journal."
      )
  );
}

// simulated names the simulated back ends; null if there are none.
export function simulated(status) {
  const names = status.backends
    .filter((b) => simulates(b.note))
    .map(titleOf)
    .sort();
  if (!names.length) return null;
  return h(
    "p",
    { class: "note" },
    "Simulated: " + names.join(", ") + ". Nothing is sent to real phones, mailboxes or operators."
  );
}

// folded replaces the journals by one row while all work.
function folded(backends) {
  const journals = backends.filter((b) => b.name.startsWith("journal "));
  if (journals.length < 2 || journals.some((b) => b.status !== "ok" || b.last_error)) return backends;
  const since = journals.map((b) => b.since).sort().at(-1);
  return [...backends.filter((b) => !journals.includes(b)), { ...journals[0], name: "journals", since }];
}

function backends(status) {
  const rows = folded(status.backends).map((b) => [
    [titleOf(b), titleOf(b).toLowerCase() !== b.name && h("div", { class: "hint" }, b.name)],
    [state(b.status), b.optional && b.status === "down" && " not needed"],
    since(b.since),
    [b.note.replace(/(, )?simulated$/, ""), " ", simulates(b.note) && state("simulated")],
    b.last_error && [long(b.last_error), " ", when(b.last_error_at)]
  ]);
  return [
    h("h2", null, "Back ends ", state(status.ready ? "ready" : "not ready")),
    simulated(status),
    table(
      "Back ends",
      ["Back end", "State", "Since", "Type", "Last error since the start"],
      rows,
      "No back ends.",
      { compact: true }
    )
  ];
}

function gateways(status) {
  const heading = h("h2", null, "Gateways");
  if (status.gateways_error)
    return [heading, h("p", { class: "note" }, "The other gateways are unknown: " + status.gateways_error)];
  const rows = status.gateways.map((g) => [
    [g.node, g.node === status.node && " (this one)"],
    state(g.away ? "down" : "ok", g.away ? "away" : "ok"),
    g.url,
    g.version,
    when(g.started_at),
    when(g.seen_at)
  ]);
  return (
    rows.length > 1 && [
      heading,
      table("Gateways", ["Node", "State", "Address", "Version", "Started", "Last heartbeat"], rows, "")
    ]
  );
}

function journals(status) {
  const rows = status.journals.map((j) => [
    link("events", { kind: j.kind }, traffic[j.kind]),
    j.accepted,
    j.processed,
    j.quarantined,
    j.lag,
    long(j.waiting),
    bytes(j.bytes),
    j.gaps ? h("span", { class: "state bad" }, j.gaps) : 0
  ]);
  return [
    h("h2", null, "Journal"),
    h(
      "p",
      { class: "hint" },
      "Everything that arrives is written here before it is acknowledged. Counted since the start of this gateway."
    ),
    table(
      "Journal",
      [
        "Traffic",
        "Accepted#",
        "Processed#",
        "Quarantined or unrouted#",
        "Not processed yet#",
        "Waits for",
        "On disk#",
        "Unreadable segments#"
      ],
      rows,
      "No journal.",
      { compact: true }
    )
  ];
}

const maxCounted = 50; // deliveries that wait for a retry

// countRetrying writes the number of deliveries that wait for a retry, of all gateways, into place; nothing
// while the database is down.
async function countRetrying(place, signal) {
  const query = { state: "retrying", limit: maxCounted };
  const { data } = await call("listDeliveries", { query, signal }).catch(() => ({}));
  const count = data && data.length + (data.length < maxCounted ? "" : "+");
  place.replaceChildren(data ? link("deliveries", { state: "retrying" }, count) : "");
}

function queue({ node, queue: q }, retrying) {
  const row = [node, q.running, q.waiting, retrying, q.parked, q.delivered, q.retried, q.dead, q.unsaved];
  return [
    h("h2", null, "Delivery queue"),
    h(
      "p",
      { class: "hint" },
      "“Waiting for a retry” and “At paused endpoints” count all gateways, the other columns this one. “Delivered or " +
        "simulated”, “Failed attempts” (those that are retried) and “Failed” count since its start."
    ),
    table(
      "Delivery queue",
      [
        "Gateway",
        "Being sent#",
        "Due now#",
        "Waiting for a retry#",
        "At paused endpoints#",
        "Delivered or simulated#",
        "Failed attempts#",
        "Failed#",
        "Results not saved yet#"
      ],
      [row],
      "",
      { compact: true }
    )
  ];
}

function carriers(status) {
  const note = (name) => (status.backends.find((b) => b.name === "carrier " + name) || { note: "" }).note;
  const bound = (c) => [
    state(c.bound ? "ok" : "down"),
    c.binds.length > 1 && " " + c.binds.filter((b) => b.bound).length + " of " + c.binds.length
  ];
  const rows = status.carriers.map((c) => [
    [c.name, " ", simulates(note(c.name)) && state("simulated")],
    c.bound !== null && bound(c),
    c.messages,
    c.receipts,
    c.waiting,
    c.accepted,
    c.rejected,
    c.unknown
  ]);
  const binds = status.carriers.flatMap((c) =>
    c.binds.map((b) => [
      c.name,
      b.name,
      b.addr,
      [state(b.bound ? "ok" : "down"), b.error && " " + b.error],
      since(b.since),
      b.messages,
      b.receipts
    ])
  );
  return [
    h("h2", null, "Carriers"),
    table(
      "Carriers",
      [
        "Carrier",
        "Connection",
        "SMS in#",
        "Delivery receipts#",
        "Parts waiting#",
        "Parts accepted#",
        "Parts rejected#",
        "Result unknown#"
      ],
      rows,
      "No carriers are configured. Carriers that post over HTTP are listed under Events.",
      { compact: true }
    ),
    binds.length > 0 &&
      [
        h("h3", null, "Connections to SMSCs (binds)"),
        table("Binds", ["Carrier", "Bind", "Address", "State", "Since", "SMS in#", "Delivery receipts#"], binds, "")
      ]
  ];
}

// stored shows the sizes of records, by kind in details, which stays open when the page is refreshed.
function stored({ stored_bytes: sizes }, details) {
  const kinds = Object.entries(sizes).sort((a, b) => b[1] - a[1]),
    total = kinds.reduce((sum, [, n]) => sum + n, 0);
  const heading = h("h2", null, "Records on disk");
  const unmeasured = "Not measured yet: the first measurement is made ten seconds after the start.";
  if (!kinds.length) return [heading, h("p", { class: "hint" }, unmeasured)];
  details.replaceChildren(
    details.firstChild, // the summary, which may have the focus
    table("Records on disk", ["Kind", "Size#"], kinds.map(([kind, n]) => [kind, bytes(n)]), "")
  );
  return [
    heading,
    h("p", { class: "hint" }, bytes(total) + " with indexes, without the journal. Measured each hour."),
    details
  ];
}

export function show(main, params, signal) {
  const retrying = h("span"),
    sizes = h("details", null, h("summary", null, "By kind of record"));
  main.append(
    h("h1", null, "System"),
    section(
      "",
      async () => {
        countRetrying(retrying, signal); // not awaited: the database may be down
        const s = (await call("getStatus", { signal })).data;
        return [
          h(
            "p",
            { class: "intro" },
            "Gateway " + s.node + ", version " + s.version + ", started ",
            when(s.started_at),
            "."
          ),
          h(
            "p",
            { class: "bar" },
            h("span", { class: "aside hint" }, "Updated " + clock(new Date(s.at)) + " (every 5 s)")
          ),
          outage(s),
          backends(s),
          gateways(s),
          carriers(s),
          journals(s),
          queue(s, retrying),
          stored(s, sizes)
        ];
      },
      { signal, every: 5000 }
    )
  );
}
