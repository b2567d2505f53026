// Events: everything that arrived, with its result, and replays.

import { account, accountName } from "../core/accounts.js";
import { link } from "../core/address.js";
import { all, call } from "../core/api.js";
import { button, code, h, long, pairs, pre, stamp, state, table, when } from "../core/dom.js";
import { ask, during, editIn, field, pick } from "../core/form.js";
import { cut, eventOf, plural } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { may } from "../core/session.js";
import { causes } from "./causes.js";
import { loadRelays, relayNumber, relayOf } from "./relaynames.js";

// tallies writes numbers that are not zero with their words: "2 added, 1 changed".
const tallies = (numbers) =>
  Object.entries(numbers)
    .filter(([, n]) => n > 0)
    .map(([text, n]) => n + " " + text)
    .join(", ");

// replayed describes the effects of a replay.
function replayed(r) {
  const effects = [
    r.readings && tallies(r.readings) && "Readings: " + tallies(r.readings) + ".",
    r.deliveries > 0 && plural(r.deliveries, "delivery", "deliveries") + " created.",
    r.alarms > 0 && plural(r.alarms, "alarm") + " raised.",
    r.rules && "Rules looked at the frames.",
    r.examined < r.count && "The numbers are of the newest " + plural(r.examined, "event") + "."
  ];
  return [plural(r.count, "event is", "events are") + " processed again.", ...effects.filter(Boolean)].join(" ");
}

// replayEvents replays events and reports the effects. Before, a question gives their number and the
// expected changes, and offers to run rules.
export async function replayEvents(clicked, ctx, selection) {
  await during(clicked, ctx.said, async () => {
    const preview = await call("replayEvents", { body: { ...selection, dry_run: true, limit: 1 }, signal: ctx.signal });
    const n = preview.count;
    if (n === 0) return h("p", { class: "hint" }, "No event matches.");
    const frames = preview.events && (selection.kind || "uplink") === "uplink";
    const rules =
      frames && field("rules", "Run rules: they may raise alarms and send notifications", "check", false);
    const texts = [
      "Each is processed again as if it had just arrived. Readings are overwritten; existing deliveries stay.",
      frames &&
        (tallies(preview.readings) ? "Readings: " + tallies(preview.readings) + "." : "No reading changes."),
      rules
    ];
    if (!(await ask("Replay " + plural(n, "event") + "?", texts.filter(Boolean), "Replay " + n))) return "";
    const body = { ...selection, ...(rules && rules.querySelector("input").checked ? { rules: true } : {}) };
    const done = await call("replayEvents", { body });
    ctx.again();
    return replayed(done);
  });
}

// replayBy asks for the limits of a replay, such as a decoder, a device, a relay or a reason.
export function replayBy(ctx, presets = {}) {
  const acct = presets.account;
  const picked = (name, text, load) => pick(name, text, load, presets[name] || "", { blank: "Any" });
  const named = (op, nameOf) => async () => (await all(op, { query: { account: acct } })).map((x) => [x.id, nameOf(x)]);
  editIn(
    "Replay events",
    {
      go: "Continue",
      intro: "Choose what limits the replay. The next step says how many events there are.",
      free: true,
      fields: [
        picked(
          "decoder",
          "Decoder",
          named("listDecodersOfAccounts", (d) => d.name || d.id)
        ),
        field("device", "Device (identifier)", "text", presets.device),
        picked(
          "relay",
          "Relay",
          named("listRelaysOfAccounts", (r) => relayNumber(r) + " (" + r.id + ")")
        ),
        field("reason", "Reason (a part of it)", "text", presets.reason),
        field("state", "State", ["", "quarantined", "unrouted", ["done", "processed"]], presets.state),
        field("from", "From (UTC)", "time", presets.from)
      ],
      save: async (v) => {
        if (!Object.keys(v).length) throw new Error("Choose at least one limit.");
        return { ...v, ...(acct ? { account: acct } : {}) };
      }
    },
    (selection) => replayEvents(document.getElementById("replay-by"), ctx, selection)
  );
}

// foretell shows the changes that a replay would make, without making them.
export async function foretell(clicked, ctx, selection) {
  await during(clicked, ctx.said, async () => {
    const r = await call("replayEvents", { body: { ...selection, dry_run: true }, signal: ctx.signal });
    if (!r.events) return plural(r.count, "event") + " would be processed again.";
    const rows = r.data.map((e) => [
      code(e.id),
      eventState(e.state),
      e.reason,
      eventState(e.new_state),
      e.new_reason,
      differences(e)
    ]);
    return h(
      "div",
      { class: "sheet" },
      h("h3", null, "Preview of the replay; nothing was changed"),
      pairs([
        ["Selected", plural(r.count, "event") + ", " + r.examined + " examined"],
        ["Selected back to", r.searched_to && [stamp(r.searched_to), " UTC"]],
        [
          "Events",
          tallies({
            stored: r.events.done,
            quarantined: r.events.quarantined,
            "with another result than now": r.events.differ
          })
        ],
        [
          "Readings",
          tallies({
            added: r.readings.added,
            changed: r.readings.changed,
            unchanged: r.readings.unchanged,
            "no longer produced, but kept": r.readings.stays
          }) || "None"
        ]
      ]),
      rows.length > 0 &&
        table("Differences", ["Event", "State", "Reason", "New state", "New reason", "Readings"], rows, ""),
      r.more && h("p", { class: "hint" }, "More events differ than are listed.")
    );
  });
}

const changes = (d) =>
  d.readings
    .filter((x) => x.effect !== "unchanged")
    .map((x) => x.key + " " + x.effect + " (" + x.old + " → " + x.new + ")")
    .join(", ");
const differences = (e) =>
  h(
    "span",
    null,
    e.devices.map((d) => [d.identifier + ": ", d.notes.join("; "), changes(d), h("br")])
  );

// eventState shows the state of an event. A processed message may still be on its way to its target.
export const eventState = (word) => state(word, word === "done" && "processed");

const kinds = {
  uplink: "Frame",
  sms: "Inbound SMS",
  receipt: "Delivery receipt",
  cdr: "Call and usage records"
};
export const eventKind = (e) => kinds[e.kind] || e.kind;

// descriptionIn is an event's outcome without the events that it repeats.
const descriptionIn = (e) => e.outcome.replace(/^((frame \S+ )?repeats \S+, dropped; )+/, "");

// subjectIn is the part of an event's description that names its first device or the numbers of its first message.
function subjectIn(e) {
  const description = descriptionIn(e);
  if (e.kind === "uplink" && description !== "no frames") return /^[^]*?(?=: |; |$)/.exec(description)[0];
  return e.kind === "sms" ? (/from .* to [^ ;,]+/.exec(description.split("; ")[0]) || [""])[0] : "";
}

// eventTitle names an event by its device or its numbers: "shed", "447700900123 → 4490".
export const eventTitle = (e) =>
  subjectIn(e).replace(/^from (.*) to /, (_, sender) => sender + " → ") || eventKind(e);

// resultOf is the outcome of an event without what its title says.
function resultOf(e) {
  const subject = subjectIn(e),
    description = descriptionIn(e);
  if (!subject || description.split(subject).length > 2) return e.outcome;
  const repeated = e.outcome.slice(0, -description.length);
  return (repeated + description.replace(subject, "").replace(/^[:;, ]+/, "")).replace(/[:;, ]+$/, "");
}

// eventDetail shows an event, with the elements of its deliveries if there are any.
export function eventDetail(e, ctx, deliveries = []) {
  const selection = { ids: [e.id] },
    mayReplay = ctx && may("replayEvents");
  return [
    pairs([
      ["Event", code(e.id)],
      ["Received", [stamp(e.received_at), " UTC"]],
      ["Kind", eventKind(e)],
      ["Source", e.source],
      ["Account", e.account ? account(e.account) : "Unknown"],
      ["State", eventState(e.state)],
      ["Reason", e.reason],
      ["Outcome", e.outcome],
      ["Deliveries", deliveries.length > 0 && deliveries],
      ["Notes", e.notes.length > 0 && e.notes.map((n) => h("div", null, n))]
    ]),
    h("h3", null, "Body"),
    pre(e.raw || "(no body)"),
    h(
      "p",
      { class: "bar" },
      mayReplay && button("Replay this event", (x) => replayEvents(x.target, ctx, selection)),
      mayReplay && button("Preview a replay", (x) => foretell(x.target, ctx, selection)),
      ctx && link("trace", { id: e.id }, "Timeline")
    )
  ];
}

// withDeliveries adds to inbound messages the deliveries of their relays, if the reader may see them.
async function withDeliveries(found, filter, signal) {
  const received = found.data.filter((e) => e.kind === "sms" && e.state === "done");
  if (!received.length || !may("listDeliveries")) return found;
  await loadRelays(signal).catch(() => {});
  const until = new Date(Date.parse(received[0].received_at) + 60_000).toISOString();
  const query = { account: filter.account, kind: "relay", from: received.at(-1).received_at, to: until, limit: 500 };
  const { data } = await call("listDeliveries", { query, signal }).catch(() => ({ data: [] }));
  for (const e of received) e.relayed = data.filter((d) => eventOf(d.message_id) === e.id);
  return found;
}

// relayed shows the state of the delivery of an inbound message.
const relayed = (d) =>
  h(
    "div",
    { class: "hint" },
    "to relay " + relayOf(d) + ": ",
    link("deliveries", { q: d.id, open: d.id }, state(d.state))
  );

export const show = listing({
  view: "events",
  op: "listEvents",
  searches: true,
  title: "Events",
  intro: "Everything that arrived at this gateway, newest first.",
  sorted: "-Received",
  empty: "No events match the filters.",
  load: async (query, signal) => withDeliveries(await call("listEvents", { query, signal }), query, signal),
  act: "replayEvents",
  selectable: () => true,
  name: eventTitle,
  detail: eventDetail,
  head: (filter, signal) =>
    Object.keys(filter).length ? "" : causes(["quarantined", "unrouted"], signal, { limit: 3 }),
  columns: [
    {
      head: "Event",
      value: eventTitle,
      cell: (e) => eventTitle(e) !== eventKind(e) && h("div", { class: "hint" }, eventKind(e))
    },
    { head: "ID", value: (e) => e.id, exported: true },
    { head: "Received", cell: (e) => when(e.received_at), value: (e) => e.received_at, first: true },
    { head: "Source", cell: (e) => h("span", { class: "nowrap" }, e.source), value: (e) => e.source, rest: true },
    { head: "Account", cell: (e) => account(e.account), value: (e) => accountName(e.account), rest: true },
    { head: "State", cell: (e) => eventState(e.state), value: (e) => e.state },
    {
      head: "Result",
      value: (e) => e.reason || e.outcome,
      unlabelled: true,
      cell: (e) => [
        long(e.reason || resultOf(e), 160),
        e.reason && resultOf(e) && h("div", { class: "hint" }, cut(resultOf(e), 160)),
        (e.relayed || []).map(relayed)
      ]
    }
  ],
  actions: (ctx) => [
    onSelected(ctx, "replayEvents", "Replay selected", (b) => replayEvents(b, ctx, { ids: [...ctx.chosen.keys()] })),
    onAll(ctx, "replayEvents", "Replay all that match", (b) => replayEvents(b, ctx, ctx.filter)),
    onAll(ctx, "replayEvents", "Preview", (b) => foretell(b, ctx, ctx.filter)),
    may("replayEvents") &&
      button("Replay…", () => replayBy(ctx, { account: ctx.filter.account }), { id: "replay-by" })
  ]
});
