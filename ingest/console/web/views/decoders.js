// Decoders of all accounts. One has a page of its own, decoder.js.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, long, state } from "../core/dom.js";
import { plural } from "../core/format.js";
import { listing } from "../core/list.js";
import { mayChange } from "../core/session.js";
import { addDecoder, lastHeard, showDecoder } from "./decoder.js";
import { codecWord } from "./deviceparts.js";

const testedFrames = 5;

// verdict tries a decoder on the last frames of the device that was heard last.
async function verdict(d, signal) {
  const hint = (text) => h("span", { class: "hint" }, text);
  const [device] = await lastHeard(d, signal);
  if (!device) return hint("No device uses it");
  const body = { account: d.account, device_id: device.id, last: testedFrames },
    frames = (await call("tryDecoder", { body, signal })).data;
  const failing = frames.filter((f) => f.errors.length || f.refused);
  if (!frames.length) return hint("No frames in the journal");
  if (!failing.length) {
    const title = "Device " + (device.name || device.identifier);
    return [state("ok"), " ", h("span", { class: "hint", title }, plural(frames.length, "frame"))];
  }
  return [state("fails"), " ", long(failing[0].errors.length ? failing[0].errors[0].message : failing[0].refused)];
}

// verdicts requests one verdict after the other and remembers them, so that a page sends one
// request at a time.
function verdicts(signal) {
  const known = new Map(),
    waiting = [];
  let busy = false;
  const work = async () => {
    if (busy) return;
    busy = true;
    for (let next; (next = waiting.shift()) && !signal.aborted;) {
      const [d, key, place] = next;
      if (!place.isConnected) continue;
      try {
        known.set(key, [await verdict(d, signal)].flat());
        place.replaceChildren(...known.get(key));
      } catch (error) {
        if (error.name === "AbortError") break;
        place.replaceChildren(h("span", { class: "hint" }, "Not tested: " + error.message));
      }
    }
    busy = false;
  };
  return (d) => {
    const key = d.account + "/" + d.id,
      place = h(
        "div",
        null,
        ...(known.get(key) || [h("span", { class: "hint" }, "…")]).map((n) => (n.cloneNode ? n.cloneNode(true) : n))
      );
    if (known.has(key)) return place;
    waiting.push([d, key, place]);
    setTimeout(work);
    return place;
  };
}

const list = (main, params, signal) => {
  const tested = verdicts(signal);
  return listing({
    view: "decoders",
    op: "listDecodersOfAccounts",
    title: "Decoders",
    intro:
      "Decoders turn payloads into readings. " +
      `The test decodes the last ${testedFrames} frames of the device heard last, and stores nothing.`,
    key: (d) => d.account + "/" + d.id,
    empty: () => [
      h("p", null, "No decoders yet."),
      mayChange() &&
        h(
          "p",
          { class: "bar" },
          button("Add decoder", () => addDecoder(), { class: "main" })
        )
    ],
    add: () => mayChange() && button("Add decoder", () => addDecoder({ account: params.account }), { class: "main" }),
    columns: [
      {
        head: "Decoder",
        value: (d) => d.name || d.id,
        cell: (d) => [
          link("decoders", { id: d.id, account: String(d.account) }, d.name || d.id),
          d.name && d.name !== d.id && h("div", { class: "hint nowrap" }, d.id)
        ]
      },
      { head: "Test", cell: tested },
      { head: "Codec", value: (d) => d.codec, cell: (d) => codecWord(d.codec) },
      { head: "Keys", value: (d) => d.keys.join(" "), cell: (d) => long(d.keys.join(", ")), rest: true },
      { head: "Account", value: (d) => d.account_name, cell: (d) => account(d.account), rest: true }
    ]
  })(main, params, signal);
};

export const show = (main, params, signal) => (params.id ? showDecoder : list)(main, params, signal);
