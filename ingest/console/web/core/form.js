// Inputs, questions to the operator, and views of a form with an answer below it.

import { h, redraw, told, wrong } from "./dom.js";
import { address } from "./router.js";

// field is a labelled input of a filter or a form.
export function field(name, text, kind, value, props) {
  const { blank = "any", ...rest } = props || {};
  let input;
  if (Array.isArray(kind)) {
    input = h("select", { name, ...rest }, kind.map((word) => h("option", { value: word }, word || blank)));
    input.value = value || kind[0];
  } else {
    const types = { number: { inputmode: "numeric" }, time: { type: "datetime-local", step: 1 }, area: { spellcheck: "false" } };
    input = h(kind === "area" ? "textarea" : "input", { name, autocomplete: "off", ...types[kind], ...rest });
    input.value = kind === "time" ? (value || "").replace(/Z$/, "") : value || "";
  }
  return h("label", { class: kind === "area" ? "wide" : false }, text, input);
}

// valuesOf reads a form; times become RFC 3339 in UTC, what is empty is left out.
export function valuesOf(form) {
  const out = {};
  for (const input of form.elements) {
    let value = input.name ? input.value : "";
    if (input.type === "datetime-local" && value) value = (value.length === 16 ? value + ":00" : value) + "Z";
    if (input.tagName !== "TEXTAREA") value = value.trim();
    if (value !== "") out[input.name] = value;
  }
  return out;
}

// ask has the operator confirm; it holds true only after the button was pressed.
// Each question is a dialog of its own, so that none hears another's end.
export function ask(title, text, yes) {
  const dialog = h("dialog", { "aria-labelledby": "asked" }, h("form", { method: "dialog" }, h("h2", { id: "asked" }, title), [text].flat().map((t) => h("p", null, t)),
    h("p", { class: "bar" }, h("button", { type: "submit", value: "yes", class: "main" }, yes), h("button", { type: "submit", value: "no" }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue === "yes"); }));
}

// during shows beside its button what became of an action, good or bad.
export async function during(clicked, place, action) {
  if (clicked.getAttribute("aria-busy")) return; // not disabled: it would lose the focus
  clicked.setAttribute("aria-busy", "true");
  place.replaceChildren(h("p", { class: "hint" }, "Working…"));
  try {
    const outcome = await action();
    place.replaceChildren(...!outcome ? [] : [outcome instanceof Node ? outcome : h("p", { class: "said" }, outcome)]);
  } catch (error) {
    place.replaceChildren(...error.name === "AbortError" ? [] : [wrong(error)]);
  } finally {
    if (place.firstChild) place.scrollIntoView({ block: "nearest" });
    clicked.removeAttribute("aria-busy");
  }
}

// asking makes a view of a form whose answer stands below it; what the address
// holds is asked at once.
export function asking(o) {
  return async (main, params, signal) => {
    const said = told(), answer = h("div", { id: "answer" });
    const form = h("form", { class: "fields sheet", "aria-label": o.title, submit: (e) => { e.preventDefault(); run(true); } }, o.fields(params),
      h("p", { class: "bar wide" }, h("button", { type: "submit", class: "main", id: "go" }, o.go), o.more && o.more(() => form, said, signal)));
    const run = (remember) => during(form.querySelector("#go"), said, async () => {
      answer.replaceChildren();
      const values = valuesOf(form);
      const here = address(o.view, Object.fromEntries(Object.entries(values).filter(([name]) => name !== "source")));
      if (remember && here !== location.hash) history.pushState(null, "", here);
      redraw(answer, await o.ask(values, signal));
    });
    main.append(h("h1", null, o.title), h("p", { class: "intro" }, o.intro), form, said, answer);
    if (o.ready(params)) await run(false);
  };
}
