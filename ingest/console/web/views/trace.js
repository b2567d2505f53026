// Timeline of an event, a message or a delivery.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { h } from "../core/dom.js";
import { asking, field } from "../core/form.js";
import { capital, eventOf } from "../core/format.js";
import { loadRules } from "./alarmparts.js";
import { deliveryDetail } from "./deliveries.js";
import { eventDetail, eventKind, eventTitle } from "./events.js";
import { loadRelays } from "./relaynames.js";

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
  const event = message && (await get(eventOf(message.message_id)));
  return event ? { event: event.data } : { deliveries: data.filter((d) => d.id === id || d.message_id === id) };
}

// timeOf writes a time to the millisecond, with the day unless the step before has the same.
function timeOf(at, before) {
  const day = at.slice(0, 10),
    fraction = (/\.(\d{1,3})/.exec(at) || [])[1] || "";
  const clock = at.slice(11, 19) + "." + fraction.padEnd(3, "0");
  return h("time", { datetime: at }, before === day ? clock : day + " " + clock);
}

const step = (s, before) =>
  h(
    "li",
    null,
    h("p", null, s.at && timeOf(s.at, before)),
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
function timelineOf(event) {
  let day = "";
  const steps = event.trace.map((s) => {
    const made = step(s, day);
    if (s.at) day = s.at.slice(0, 10);
    return made;
  });
  const subject = eventTitle(event) === eventKind(event) ? "" : ": " + eventTitle(event);
  return [
    h("h2", null, eventKind(event) + subject),
    h("p", { class: "hint" }, "Times in UTC."),
    h("ol", { class: "way sheet" }, steps)
  ];
}

function nodesOf({ event, deliveries: unowned }) {
  const deliveries = event ? event.deliveries : unowned;
  if (!event && deliveries.length === 0) {
    return [
      h(
        "p",
        { class: "empty" },
        "No event or delivery has this ID. Events are kept until the journal's retention ends."
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
  fields: (p) => field("id", "ID of an event, message or delivery", "text", p.id, { required: true }),
  ready: (p) => p.id,
  ask: async (v, signal) => {
    await Promise.allSettled([loadRules(signal), loadRelays(signal)]); // for their names
    return nodesOf(await follow(v.id || "", signal));
  }
});
