// The way around: an address is "#view?what=it+shows", so that a reload, the back
// button and a link to a colleague show the same.

import { byId, h, wrong } from "./dom.js";
import { leave, may, signedIn, start as startSession } from "./session.js";

let views = [];
let leaving = new AbortController();

// address is where a view is, with what it shows.
export function address(view, params) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null)).toString();
  return "#" + view + (query && "?" + query);
}

export const link = (view, params, ...text) => h("a", { href: address(view, params) }, text);

export function go(view, params) {
  if (location.hash === address(view, params)) route();
  else location.hash = address(view, params);
}

// start shows what the address names, now and whenever it changes.
export function start(all) {
  views = all;
  byId("menu").addEventListener("click", () => unfold(byId("menu").getAttribute("aria-expanded") !== "true"));
  byId("skip").addEventListener("click", (e) => { e.preventDefault(); byId("main").focus(); }); // the address is the view's
  startSession(route, () => { leaving.abort(); byId("views").hidden = byId("menu").hidden = true; });
  window.addEventListener("hashchange", route);
  route();
}

// offer fills the navigation with the views that the reader may see.
function offer(allowed) {
  const groups = [...new Set(allowed.map((v) => v.group))];
  byId("views").replaceChildren(...groups.map((group) => h("div", { class: "group" }, h("span", { class: "hint" }, group),
    allowed.filter((v) => v.group === group).map((v) => h("a", { href: "#" + v.name }, v.title)))));
}

// unfold opens or closes the navigation on a phone, where it is a menu.
function unfold(open) {
  byId("menu").setAttribute("aria-expanded", String(open));
  byId("views").classList.toggle("open", open);
}

// route shows what the address names; the signal tells the view before to stop.
async function route() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving, main = byId("main");
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  if (!signedIn()) return leave("");
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const allowed = views.filter((v) => may(v.needs));
  const here = views.find((v) => v.name === name) || allowed[0];
  offer(allowed);
  byId("views").hidden = byId("menu").hidden = byId("leave").hidden = false;
  unfold(false);
  byId("menu").textContent = "Menu: " + here.title;
  for (const a of byId("views").querySelectorAll("a")) a.hash === "#" + here.name ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  document.title = here.title + " · Penstock console";
  main.replaceChildren();
  if (document.activeElement === document.body) main.focus({ preventScroll: true }); // what had the focus is gone
  try {
    const { show } = await here.load();
    if (!signal.aborted) await show(main, Object.fromEntries(new URLSearchParams(query || "")), signal);
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) main.append(wrong(error));
  }
}
