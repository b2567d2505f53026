// Timeline of an event, a message or a delivery.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { h, stamp } from "../core/dom.js";
import { asking, field } from "../core/form.js";
import { capital } from "../core/format.js";
import { deliveryDetail } from "./deliveries.js";
import { eventDetail } from "./events.js";

// follow finds an event by its own id, a message's or a delivery's.
async function follow(id, signal) {
  const get = (event) =>
    call("getEvent", { path: { event }, signal }).catch((error) => {
      if (error.status !== 404) throw error;
    });
  const found = !/^[0-9a-f]{32}$/.test(id) && (await get(id)); // a delivery's id is 32 digits
  if (found) return { event: found.data };
  const { data } = await call("listDeliveries", { query: { q: id, limit: 20 }, signal });
  const message = data.find((d) => d.id === id && (d.kind === "relay" || d.kind === "rule"));
  const event = message && (await get(message.message_id));
  return event ? { event: event.data } : { deliveries: data.filter((d) => d.id === id || d.message_id === id) };
}

const step = (s) =>
  h(
    "li",
    null,
    h("p", null, s.at && [stamp(s.at), " UTC"]),
    h("p", null, h("b", null, capital(s.step))),
    h("p", null, capital(s.text))
  );
const deliverySheet = (d) =>
  h(
    "div",
    { class: "sheet" },
    deliveryDetail(d),
    !d.hidden && h("p", null, link("deliveries", { q: d.id, open: d.id }, "Open in Deliveries"))
  );

// timelineOf shows the steps of an event.
const timelineOf = (event) => h("ol", { class: "way sheet" }, event.trace.map(step));

function nodesOf({ event, deliveries: unowned }) {
  const deliveries = event ? event.deliveries : unowned;
  if (!event && deliveries.length === 0) {
    return [
      h(
        "p",
        { class: "empty" },
        "No event or delivery has this id. Events are kept until the journal's retention ends."
      )
    ];
  }
  return [
    event && [
      timelineOf(event),
      h("h2", null, "Event"),
      h("div", { class: "sheet" }, eventDetail(event))
    ],
    deliveries.length > 0 && [h("h2", null, "Deliveries"), deliveries.map(deliverySheet)]
  ];
}

export const show = asking({
  view: "trace",
  title: "Timeline",
  intro: "Follow one event, message or delivery from arrival to the last delivery attempt.",
  go: "Follow",
  fields: (p) => field("id", "Event, message or delivery (id)", "text", p.id, { required: true }),
  ready: (p) => p.id,
  ask: async (v, signal) => nodesOf(await follow(v.id || "", signal))
});
