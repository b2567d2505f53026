// Deliveries: what goes out, with every attempt, and its replay.

import { account } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, code, h, long, pairs, pre, stamp, state, table } from "../core/dom.js";
import { ask, during } from "../core/form.js";
import { cut, plural } from "../core/format.js";
import { listing, onAll, onSelected } from "../core/list.js";
import { link } from "../core/router.js";
import { may } from "../core/session.js";

const countAtMost = 20;  // pages of 1000 that a confirmation counts

const arrived = (d) => d.state === "delivered" || d.state === "simulated";

// countDeliveries counts what a filter selects, page by page.
async function countDeliveries(filter, signal) {
  let n = 0, cursor = "";
  for (let page = 0; page < countAtMost; page++) {
    const found = await call("listDeliveries", { query: { ...filter, cursor, limit: 1000 }, signal });
    n += found.data.length;
    cursor = found.meta.next;
    if (!cursor) return String(n);
  }
  return "more than " + n;
}

async function replayDeliveries(clicked, ctx, chosen, filter) {
  await during(clicked, ctx.said, async () => {
    const again = (chosen || []).filter(arrived).length;
    const n = chosen ? String(chosen.length) : await countDeliveries(filter, ctx.signal);
    if (n === "0") return "No dead delivery matches.";
    const text = ["Each goes out again to where it was to go" + (chosen ? "." : ": everything dead that matches the filters.")];
    if (again) text.push(plural(again, "of them has", "of them have") + " arrived already: the receiver gets it a second time.");
    if (!await ask("Send " + n + (n === "1" ? " delivery" : " deliveries") + " again?", text, "Replay " + n)) return "";
    const { count } = await call("replayDeliveries", { body: chosen ? { ids: chosen.map((d) => d.id), include_delivered: again > 0 } : filter });
    ctx.again();
    return plural(count, "delivery is", "deliveries are") + " back at work.";
  });
}

function attempts(d) {
  const rows = d.attempts.map((a, i) => [i + 1, stamp(a.at), a.duration_ms + " ms", a.status || "no answer", long(a.error), a.response && pre(a.response)]);
  return [h("h3", null, "Attempts"), table("Attempts of " + d.id, ["No.#", "At (UTC)", "Took#", "Status", "Error", "Start of the answer"], rows, "No attempt was made yet.")];
}

const waitsFor = (d) => (d.waits_for ? (d.waits_for === "breaker" ? "the breaker of its endpoint" : "its turn at an ordered endpoint") : stamp(d.next_attempt_at));

export function deliveryDetail(d, ctx) {
  return [pairs([["Delivery", code(d.id)], ["Kind", d.kind], ["Account", account(d.account)], [d.kind === "rule" ? "Rule" : "Relay", d.relay], [d.kind === "rule" ? "Alarm or frame" : "Message", code(d.message_id)], ["From", d.originator], ["To", d.destination],
    ["Target", code(d.target)], ["State", state(d.state)], ["Reason", d.reason], ["Created", stamp(d.created_at)], ["Waits for", waitsFor(d)]]),
  attempts(d),
  h("p", { class: "bar" }, ctx && may("replayDeliveries") && d.state === "dead" && button("Replay this delivery", (x) => replayDeliveries(x.target, ctx, [d])),
    ctx && may("replayDeliveries") && arrived(d) && button("Send it once more", (x) => replayDeliveries(x.target, ctx, [d])),
    ctx && d.kind === "relay" && link("trace", { id: d.message_id }, "The whole way of its message"))];
}

export const show = listing({
  view: "deliveries", op: "listDeliveries", title: "Deliveries", intro: "What goes out to endpoints and mailboxes, newest first. Open one for its attempts. The dead wait here until a person decides.",
  empty: "No delivery matches. What relays, rules, delivery reports and callbacks send would be here, with every attempt.",
  heads: ["Delivery", "Created (UTC)", "Sent by", "Account", "Target", "State", "Attempts"], name: (d) => cut(d.id, 12),
  act: "replayDeliveries", selectable: (d) => d.state === "dead" || arrived(d), detail: deliveryDetail,
  cells: (d) => [stamp(d.created_at), [d.kind, " ", d.relay], account(d.account), long(cut(d.target, 80)), [state(d.state), long(cut(d.reason, 160))], d.attempts.length],
  actions: (ctx) => [onSelected(ctx, "replayDeliveries", "Replay selected", (b) => replayDeliveries(b, ctx, [...ctx.chosen.values()])),
    (!ctx.filter.state || ctx.filter.state === "dead") && onAll(ctx, "replayDeliveries", "Replay all dead that match", (b) => replayDeliveries(b, ctx, null, { ...ctx.filter, state: "dead" }))].filter(Boolean),
});
