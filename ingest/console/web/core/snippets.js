// Commands and addresses to copy, with the values of the reader filled in.

import { button, h } from "./dom.js";

// snippet shows a text to copy.
export function snippet(text, label) {
  const copy = (e) => {
    navigator.clipboard?.writeText(text);
    e.target.textContent = "Copied";
  };
  return h("div", { class: "snippet" }, h("pre", { tabindex: 0, "aria-label": label }, text), button("Copy", copy));
}

// frameCommand sends a reading of a device as a program would.
export const frameCommand = (token, identifier, decoder) =>
  `curl -H "Authorization: Bearer ${token}" \\\n  --json '{"temperature":21.5}' \\\n  ` +
  `"${location.origin}/webhooks/generic/${encodeURIComponent(identifier)}?decoder_id=${encodeURIComponent(decoder)}"`;

// webhookOf is the address that a LoRaWAN network server posts to.
export const webhookOf = (decoder) => `${location.origin}/webhooks/lorawan?decoder_id=${encodeURIComponent(decoder)}`;
