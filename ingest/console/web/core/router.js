// The router shows the view that the address names, and the navigation.

import { address, link } from "./address.js";
import { unreachable } from "./api.js";
import { byId, h, wrong } from "./dom.js";
import { confirmLoss } from "./form.js";
import { leave, may, signedIn, start as startSession } from "./session.js";
import { discard, unsaved } from "./unsaved.js";

let views = [];
let leaving = new AbortController();
let shown = ""; // the address of what is shown

// start shows what the address names, now and whenever it changes.
export function start(table) {
  views = table;
  byId("menu").addEventListener("click", () => unfold(byId("menu").getAttribute("aria-expanded") !== "true"));
  byId("skip").addEventListener("click", (e) => {
    e.preventDefault();
    byId("main").focus();
  }); // the address is the view's
  startSession(route, () => {
    leaving.abort();
    discard();
    document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
    byId("views").hidden = byId("menu").hidden = true;
  });
  window.addEventListener("hashchange", follow);
  route();
}

// follow goes where the address leads, after a question if that loses edited work.
async function follow() {
  if (!unsaved()) return route();
  const target = location.hash;
  history.replaceState(null, "", shown || "#");
  if (!(await confirmLoss())) return;
  discard();
  if (target === location.hash) route();
  else location.hash = target;
}

// offer fills the navigation with the views that the reader may see.
function offer(allowed) {
  const listed = allowed.filter((v) => v.group),
    groups = [...new Set(listed.map((v) => v.group))];
  byId("views").replaceChildren(
    ...groups.map((group) =>
      h(
        "div",
        { class: "group" },
        h("span", { class: "hint" }, group),
        listed.filter((v) => v.group === group).map((v) => link(v.name, {}, v.title))
      )
    )
  );
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
  const { signal } = leaving,
    main = byId("main");
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  if (!signedIn()) return leave("");
  shown = location.hash;
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  const allowed = views.filter((v) => may(v.needs));
  const here = views.find((v) => v.name === name) || allowed[0];
  offer(allowed);
  byId("views").hidden = byId("menu").hidden = byId("leave").hidden = false;
  unfold(false);
  byId("menu").textContent = "☰ Menu";
  for (const a of byId("views").querySelectorAll("a")) {
    if (a.hash === address(here.under || here.name)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  document.title = here.title + " · Penstock console";
  const parent = allowed.find((v) => v.name === here.under);
  main.replaceChildren(...(parent ? [h("p", { class: "back" }, link(parent.name, {}, "← " + parent.title))] : []));
  if (document.activeElement === document.body) main.focus({ preventScroll: true }); // the focused element is gone
  try {
    if (here.refusal && !may(here.needs))
      return main.append(h("h1", null, here.title), h("p", { class: "note" }, here.refusal));
    const { show } = await here.load().catch((error) => {
      throw error instanceof TypeError ? new Error(unreachable) : error; // a module that could not be fetched
    });
    if (!signal.aborted) await show(main, Object.fromEntries(new URLSearchParams(query || "")), signal);
  } catch (error) {
    if (error.name !== "AbortError" && !signal.aborted) main.append(wrong(error));
  }
}
