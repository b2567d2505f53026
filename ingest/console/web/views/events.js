// Events: what arrived, what became of it, and its replay.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, code, h, long, pairs, pre, stamp, state, table } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { link } from "../core/router.js";
import { may } from "../core/session.js";

export async function replayEvents(clicked, ctx, selection, n) {
  await during(clicked, ctx.said, async () => {
    if (n === undefined) n = (await call("replayEvents", { body: { ...selection, dry_run: true, limit: 1 }, signal: ctx.signal })).count;
    if (n === 0) return "No event matches.";
    const sure = await ask("Replay " + plural(n, "event") + "?", "Each is processed again as if it had just arrived. Readings are overwritten; deliveries that exist are left as they are.", "Replay " + n);
    if (!sure) return "";
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
    const rows = r.data.map((e) => [code(e.id), state(e.state), e.reason, state(e.new_state), e.new_reason, differences(e)]);
    return h("div", { class: "sheet" }, h("h3", null, "A replay would do this; nothing was changed"), pairs([
      ["Selected", plural(r.count, "event") + ", looked into " + r.examined], ["Selected back to", r.searched_to && stamp(r.searched_to)],
      ["Events", r.events.done + " stored, " + r.events.quarantined + " quarantined, " + r.events.differ + " differ from now"],
      ["Readings", r.readings.added + " added, " + r.readings.changed + " changed, " + r.readings.unchanged + " unchanged, " + r.readings.stays + " stay"]]),
    rows.length > 0 && table("What differs", ["Event", "State", "Reason", "New state", "New reason", "Readings"], rows, ""), r.more && h("p", { class: "hint" }, "More events differ than are shown."));
  });
}

const differences = (e) => h("span", null, e.devices.map((d) => [d.identifier + ": ", d.notes.join("; "), d.readings.filter((x) => x.effect !== "unchanged")
  .map((x) => x.key + " " + x.effect + " (" + x.old + " → " + x.new + ")").join(", "), h("br")]));

export function eventDetail(e, ctx) {
  const id = { ids: [e.id] };
  return [pairs([["Event", code(e.id)], ["Received", stamp(e.received_at)], ["Kind", e.kind], ["Source", e.source], ["Account", e.account ? account(e.account) : "not known"],
    ["State", state(e.state)], ["Reason", e.reason], ["Outcome", e.outcome], ["Notes", e.notes.length > 0 && e.notes.map((n) => h("div", null, n))]]),
  h("h3", null, "As it arrived"), pre(e.raw || "(no body)"),
  h("p", { class: "bar" }, ctx && may("replayEvents") && button("Replay this event", (x) => replayEvents(x.target, ctx, id, 1)), ctx && may("replayEvents") && button("What a replay would change", (x) => foretell(x.target, ctx, id)),
    ctx && link("trace", { id: e.id }, "The whole way of it"))];
}

export const show = listing({
  view: "events", op: "listEvents", title: "Events", intro: "What arrived at this gateway, newest first, and what became of it. Open one for its body and the reason.",
  empty: "No event matches. Frames, messages, receipts and call records would be here from the moment they are safe on disk.",
  heads: ["Event", "Received (UTC)", "Kind", "Source", "Account", "State", "Reason or outcome"], name: (e) => cut(e.id, 12), act: "replayEvents", selectable: () => true, detail: eventDetail,
  cells: (e) => [stamp(e.received_at), e.kind, e.source, account(e.account), state(e.state), [long(cut(e.reason || e.outcome, 160)), e.reason && e.outcome && h("div", { class: "hint" }, cut(e.outcome, 160))]],
  actions: (ctx) => [onSelected(ctx, "replayEvents", "Replay selected", (b) => replayEvents(b, ctx, { ids: [...ctx.chosen.keys()] }, ctx.chosen.size)),
    onAll(ctx, "replayEvents", "Replay all that match", (b) => replayEvents(b, ctx, ctx.filter)), onAll(ctx, "replayEvents", "What that would change", (b) => foretell(b, ctx, ctx.filter))],
});
