// Events: what arrived, what became of it, and its replay.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, h, long, pairs, pre, stamp, state, table, when } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { may } from "../core/session.js";
import { causes } from "./causes.js";

export async function replayEvents(clicked, ctx, selection, n) {
  await during(clicked, ctx.said, async () => {
    if (n === undefined) {
      n = (await call("replayEvents", { body: { ...selection, dry_run: true, limit: 1 }, signal: ctx.signal })).count;
    }
    if (n === 0) return "No event matches.";
    const text =
      "Each is processed again as if it had just arrived. Readings are overwritten; existing deliveries stay.";
    if (!(await ask("Replay " + plural(n, "event") + "?", text, "Replay " + n))) return "";
    const { count } = await call("replayEvents", { body: selection });
    ctx.again();
    return plural(count, "event is", "events are") + " processed again.";
  });
}

// foretell shows what a replay would change, without changing it.
export async function foretell(clicked, ctx, selection) {
  await during(clicked, ctx.said, async () => {
    const r = await call("replayEvents", { body: { ...selection, dry_run: true }, signal: ctx.signal });
    if (!r.events) return plural(r.count, "event") + " would be processed again.";
    const rows = r.data.map((e) => [
      code(e.id),
      state(e.state),
      e.reason,
      state(e.new_state),
      e.new_reason,
      differences(e)
    ]);
    return h(
      "div",
      { class: "sheet" },
      h("h3", null, "Preview of the replay; nothing was changed"),
      pairs([
        ["Selected", plural(r.count, "event") + ", " + r.examined + " examined"],
        ["Selected back to", r.searched_to && stamp(r.searched_to)],
        [
          "Events",
          r.events.done + " stored, " + r.events.quarantined + " quarantined, " + r.events.differ + " differ from now"
        ],
        [
          "Readings",
          r.readings.added +
            " added, " +
            r.readings.changed +
            " changed, " +
            r.readings.unchanged +
            " unchanged, " +
            r.readings.stays +
            " stay"
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

// titles say what an event is before its id.
const kinds = { uplink: "Frame", sms: "Inbound SMS", receipt: "Delivery receipt", cdr: "Call records" };
export const eventTitle = (e) => kinds[e.kind] || e.kind;

export function eventDetail(e, ctx) {
  const selection = { ids: [e.id] },
    mayReplay = ctx && may("replayEvents");
  return [
    pairs([
      ["Event", code(e.id)],
      ["Received", [stamp(e.received_at), " UTC"]],
      ["Kind", e.kind],
      ["Source", e.source],
      ["Account", e.account ? account(e.account) : "unknown"],
      ["State", state(e.state)],
      ["Reason", e.reason],
      ["Outcome", e.outcome],
      ["Notes", e.notes.length > 0 && e.notes.map((n) => h("div", null, n))]
    ]),
    h("h3", null, "Body"),
    pre(e.raw || "(no body)"),
    h(
      "p",
      { class: "bar" },
      mayReplay && button("Replay this event", (x) => replayEvents(x.target, ctx, selection, 1)),
      mayReplay && button("Preview a replay", (x) => foretell(x.target, ctx, selection)),
      ctx && link("trace", { id: e.id }, "Timeline")
    )
  ];
}

export const show = listing({
  view: "events",
  op: "listEvents",
  title: "Events",
  intro: "Everything that arrived at this gateway, newest first.",
  empty: "No events match the filters.",
  act: "replayEvents",
  selectable: () => true,
  name: eventTitle,
  detail: eventDetail,
  head: (filter, signal) => (filter.state || filter.q ? "" : causes(["quarantined", "unrouted"], signal)),
  columns: [
    { head: "Event", cell: () => "", value: (e) => e.id },
    { head: "Received", cell: (e) => when(e.received_at), value: (e) => e.received_at },
    { head: "Source", cell: (e) => e.source, value: (e) => e.source, rest: true },
    { head: "Account", cell: (e) => account(e.account), value: (e) => e.account, rest: true },
    { head: "State", cell: (e) => state(e.state), value: (e) => e.state },
    {
      head: "Reason or outcome",
      value: (e) => e.reason || e.outcome,
      cell: (e) => [
        long(cut(e.reason || e.outcome, 160)),
        e.reason && e.outcome && h("div", { class: "hint" }, cut(e.outcome, 160))
      ]
    }
  ],
  actions: (ctx) => [
    onSelected(ctx, "replayEvents", "Replay selected", (b) =>
      replayEvents(b, ctx, { ids: [...ctx.chosen.keys()] }, ctx.chosen.size)
    ),
    onAll(ctx, "replayEvents", "Replay all that match", (b) => replayEvents(b, ctx, ctx.filter)),
    onAll(ctx, "replayEvents", "Preview", (b) => foretell(b, ctx, ctx.filter))
  ]
});
