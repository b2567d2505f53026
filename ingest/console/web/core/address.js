// Addresses of the console: "#view?name=value". An address has all parameters of a view, for
// reloads, the back button and links to colleagues.

import { h } from "./dom.js";

// address returns the address of a view with its parameters; empty ones are omitted.
export function address(view, params = {}) {
  const set = Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(set).toString();
  return "#" + view + (query && "?" + query);
}

export const link = (view, params, ...text) => h("a", { href: address(view, params) }, text);

// go opens a view, and draws the current view again if the address is unchanged.
export function go(view, params) {
  if (location.hash === address(view, params)) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = address(view, params);
}
