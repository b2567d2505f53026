// Trace: the whole way of an event, a message or a delivery.

import { call } from "../core/api.js";
import { h, stamp } from "../core/dom.js";
import { asking, field } from "../core/form.js";
import { link } from "../core/router.js";
import { deliveryDetail } from "./deliveries.js";
import { eventDetail } from "./events.js";

// follow finds an event by its own id, a message's or a delivery's.
async function follow(id, signal) {
  const get = (event) => call("getEvent", { path: { event }, signal }).catch((error) => { if (error.status !== 404) throw error; });
  const found = !/^[0-9a-f]{32}$/.test(id) && await get(id); // a delivery's id is 32 digits
  if (found) return { event: found.data };
  const { data } = await call("listDeliveries", { query: { q: id, limit: 20 }, signal });
  const message = data.find((d) => d.id === id && (d.kind === "relay" || d.kind === "rule"));
  const other = message && await get(message.message_id);
  return other ? { event: other.data } : { deliveries: data.filter((d) => d.id === id || d.message_id === id) };
}

const step = (s) => h("li", null, h("p", null, s.at && stamp(s.at)), h("p", null, h("b", null, s.step)), h("p", null, s.text));

function way({ event, deliveries: found }) {
  const list = event ? event.deliveries : found;
  const out = event ? [h("h2", null, "The way of it"), h("ol", { class: "way sheet" }, event.trace.map(step)), h("h2", null, "The event"), h("div", { class: "sheet" }, eventDetail(event))] : [];
  if (!event && list.length === 0) return [h("p", { class: "empty" }, "Neither an event of this gateway nor a delivery has this id. Each gateway knows the events of its own journal, for as long as they are kept.")];
  if (list.length) out.push(h("h2", null, "Deliveries"), list.map((d) => h("div", { class: "sheet" }, deliveryDetail(d), h("p", null, link("deliveries", { q: d.id, open: d.id }, "Open under Deliveries")))));
  return out;
}

export const show = asking({
  view: "trace", title: "Trace", intro: "The whole way of one thing: what arrived, how it was read and routed, and every delivery with every attempt.", go: "Follow",
  fields: (p) => field("id", "Id of an event, a message or a delivery", "text", p.id, { required: true }), ready: (p) => p.id, ask: async (v, signal) => way(await follow(v.id || "", signal)),
});
