// Inputs, forms that save, questions to the operator, and views of a form with an answer
// below it.

import { address } from "./address.js";
import { button, h, redraw, told, wrong } from "./dom.js";
import { exact } from "./format.js";
import { guard, saved, unsaved } from "./unsaved.js";

// timePattern matches a time in UTC as the console writes it; the time of day may be omitted.
const timePattern = "\\d{4}-\\d{2}-\\d{2}([ T]\\d{2}:\\d{2}(:\\d{2})?)?";

const inputTypes = {
  number: { inputmode: "numeric", pattern: "[+\\-]?\\d+", title: "A whole number" },
  time: { pattern: timePattern, placeholder: "e.g. 2026-11-30 14:00", "data-kind": "time" },
  area: { spellcheck: "false" },
  password: { type: "password" },
  check: { type: "checkbox" },
  tel: { inputmode: "tel" }
};

let fieldNumber = 0;

// field is a labelled input of a filter or a form. kind is a key of inputTypes, "text", or
// the options of a list: words, or [value, text]. props may hold a hint, blank (the text
// of an empty option), wide (all columns), and attributes of the input.
export function field(name, text, kind, value, props) {
  const { blank = "Any", hint, wide, id = "field-" + ++fieldNumber, ...attributes } = props || {};
  const hinted = hint && { "aria-describedby": id + "-hint" };
  let input;
  if (Array.isArray(kind)) {
    const options = kind.map((option) => [option].flat()).map(([v, label]) => [v, label || v || blank]);
    input = h(
      "select",
      { name, id, ...hinted, ...attributes },
      options.map(([v, label]) => h("option", { value: v }, label))
    );
    input.value = options.some(([v]) => v === value) ? value : options[0][0];
  } else {
    const tag = kind === "area" ? "textarea" : "input";
    input = h(tag, { name, id, autocomplete: "off", ...inputTypes[kind], ...hinted, ...attributes });
    if (kind === "check") input.checked = Boolean(value);
    else input.value = kind === "time" ? exact(value || "") : (value ?? "");
  }
  const label = h("label", { for: id }, text),
    about = hint && h("p", { class: "hint", id: id + "-hint" }, hint);
  const width = kind === "area" || wide ? " wide" : "";
  return h(
    "div",
    { class: "field" + width + (kind === "check" ? " check" : "") },
    kind === "check" ? [input, label] : [label, input],
    about
  );
}

// pick is a list of records by name. load returns [[id, name]]; an empty id is offered
// under the text blank unless the field is required or only the records are meant. A required field with
// choose: true has no choice at first. changed(id) follows the choice.
export function pick(name, text, load, value, { blank = "Any", changed, only, choose, ...props } = {}) {
  const made = field(name, text, [["", blank], ...(value ? [[value, value]] : [])], value, props);
  const select = made.querySelector("select");
  made.ready = load()
    .then((records) => {
      const chosen = select.value;
      const known = !chosen || records.some(([id]) => String(id) === chosen);
      const first = choose && records.length ? "Choose…" : blank,
        chooses = only || (props.required && records.length && !choose);
      const options = [
        ...(chooses ? [] : [["", first]]),
        ...(known ? [] : [[chosen, chosen]]),
        ...records
      ];
      select.replaceChildren(...options.map(([id, label]) => h("option", { value: id }, label)));
      select.value = chosen || (chooses && records.length ? records[0][0] : "");
      if (changed) changed(select.value);
    })
    .catch((error) => {
      if (error.name !== "AbortError") made.append(h("p", { class: "problem" }, error.message));
    });
  if (changed) select.addEventListener("change", () => changed(select.value));
  return made;
}

// momentOf writes the time of an input as RFC 3339: "2026-11-30 14:00" becomes "2026-11-30T14:00:00Z".
const momentOf = (text) => text.replace(" ", "T") + "T00:00:00Z".slice(Math.max(0, text.length - 10));

// valuesOf reads a form; times become RFC 3339 in UTC, empty inputs are omitted.
export function valuesOf(form) {
  const values = {};
  for (const input of form.elements) {
    if (!input.name || input.closest("[hidden]")) continue;
    let value = input.type === "checkbox" ? input.checked : input.value;
    if (input.dataset.kind === "time" && value) value = momentOf(value.trim());
    if (typeof value === "string" && input.tagName !== "TEXTAREA" && input.type !== "password") value = value.trim();
    if (value !== "") values[input.name] = value;
  }
  return values;
}

// reveal shows or hides a part of a form. The browser does not validate the inputs of a hidden part, and
// valuesOf omits them.
export function reveal(part, shown) {
  part.hidden = !shown;
  for (const input of part.querySelectorAll("input, select, textarea")) input.disabled = !shown;
}

// linesOf returns the lines of a text area without the empty ones.
export const linesOf = (text) =>
  (text || "")
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

// inputOf finds the input of an error's path: "parameters.0" is in the input parameters.
function inputOf(form, path, aliases) {
  const shown = (name) => name && form.elements[name]?.name && !form.elements[name].closest("[hidden]");
  for (let name = path; name; name = name.slice(0, Math.max(0, name.lastIndexOf(".")))) {
    const found = [aliases[name], name].find(shown);
    if (found) return form.elements[found];
  }
  return null;
}

function clearProblems(form) {
  for (const p of form.querySelectorAll(".problem")) p.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
}

// showProblems writes the errors of the API's fields beside their inputs and returns those
// that belong to none.
function showProblems(form, fields, aliases) {
  const unplaced = [];
  let first = null;
  for (const [path, problems] of Object.entries(fields || {})) {
    const input = inputOf(form, path, aliases),
      text = [problems].flat().join(" ").replace(path + ": ", "");
    if (!input) {
      unplaced.push(path + ": " + text);
      continue;
    }
    const id = input.id + "-problem-" + input.parentElement.querySelectorAll(".problem").length;
    input.parentElement.append(h("p", { class: "problem", id }, text));
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", id);
    first = first || input;
  }
  if (first) first.focus();
  return unplaced;
}

// editor is a form that saves. o has:
//   label    its name
//   fields   its inputs
//   go       the text of its button
//   save     async (values, form) => what to say, or an element; refusals of the API are
//            written beside the inputs
//   aliases  inputs of error paths with another name: { "data.name": "name" }
//   more     further buttons
//   free     true: leaving it does not ask
export function editor(o) {
  const note = told();
  const form = h(
    "form",
    {
      class: "fields" + (o.sheet === false ? "" : " sheet"),
      "aria-label": o.label,
      novalidate: o.novalidate || false,
      submit: (e) => {
        e.preventDefault();
        submit();
      }
    },
    o.fields,
    h("p", { class: "bar wide" }, h("button", { type: "submit", class: "main" }, o.go), o.more),
    note
  );
  const submit = () =>
    during(form.querySelector("button[type=submit]"), note, async () => {
      clearProblems(form);
      try {
        const outcome = await o.save(valuesOf(form), form);
        saved(form);
        return outcome;
      } catch (error) {
        if (!error.fields || !Object.keys(error.fields).length) throw error;
        const unplaced = showProblems(form, error.fields, o.aliases || {});
        throw Object.assign(
          new Error(unplaced.length ? [error.brief, ...unplaced].join("\n") : "Not saved. See the marked fields."),
          { status: error.status }
        );
      }
    });
  if (!o.free) guard(form);
  return form;
}

// overlay shows a dialog until close is called or the reader closes it, and asks before edited
// content is lost. content(close, cancel) returns the nodes. If they do not contain the button
// cancel, the last bar gets a button Close.
export function overlay(title, content) {
  const dialog = h("dialog", { "aria-labelledby": "overlay-title" });
  const close = () => {
    dialog.close();
  };
  const dismiss = async () => {
    if (!unsaved(dialog) || (await confirmLoss())) close();
  };
  dialog.addEventListener("cancel", (e) => {
    e.preventDefault();
    dismiss();
  });
  dialog.addEventListener("close", () => dialog.remove());
  const cancel = button("Cancel", dismiss);
  dialog.append(h("h2", { id: "overlay-title" }, title), ...[content(close, cancel)].flat(Infinity).filter(Boolean));
  if (!dialog.contains(cancel)) [...dialog.querySelectorAll(".bar")].at(-1).append(button("Close", dismiss));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// editIn shows a form in a dialog, which closes after it was saved; done(outcome) follows.
export function editIn(title, o, done) {
  return overlay(title, (close, cancel) => [
    o.intro && h("p", { class: "intro" }, o.intro),
    editor({
      ...o,
      label: title,
      sheet: false,
      more: [o.more, cancel],
      save: async (values, form) => {
        const outcome = await o.save(values, form);
        saved(form);
        close();
        done(outcome);
        return "";
      }
    })
  ]);
}

// copyButton copies a text to the clipboard.
export const copyButton = (text) =>
  button(
    "Copy",
    (e) => {
      navigator.clipboard?.writeText(text);
      e.target.textContent = "Copied";
    },
    { class: "main" }
  );

export const confirmLoss = () => ask("Leave without saving?", "Your changes are not saved.", "Leave");

// destructive buttons have the colour of danger.
const destructive = ["Delete", "Remove", "Revoke", "Terminate", "Leave"];

// ask shows a confirmation; its result is true only if the operator pressed the button.
// Each question has its own dialog, so that closing one does not answer another.
export function ask(title, text, yes) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "question" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "question" }, title),
      [text].flat().map((t) => (t instanceof Node ? t : h("p", null, t))),
      h(
        "p",
        { class: "bar" },
        h("button", { type: "submit", value: "yes", class: destructive.includes(yes) ? "main danger" : "main" }, yes),
        h("button", { type: "submit", value: "no" }, "Cancel")
      )
    )
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) =>
    dialog.addEventListener("close", () => {
      dialog.remove();
      done(dialog.returnValue === "yes");
    })
  );
}

// during runs the action of a button and shows the result or the error beside the button.
export async function during(clicked, place, action) {
  if (clicked.getAttribute("aria-busy")) return; // not disabled: it would lose the focus
  clicked.setAttribute("aria-busy", "true");
  place.replaceChildren(h("p", { class: "hint" }, "Working…"));
  try {
    const outcome = await action();
    place.replaceChildren(
      ...(!outcome ? [] : [outcome instanceof Node ? outcome : h("p", { class: "said" }, outcome)])
    );
  } catch (error) {
    place.replaceChildren(...(error.name === "AbortError" ? [] : [wrong(error)]));
  } finally {
    if (place.firstChild) place.scrollIntoView({ block: "nearest" });
    clicked.removeAttribute("aria-busy");
  }
}

// asking makes a view of a form whose answer stands below it. If the address has the values of the
// form, the answer is requested at once.
export function asking(o) {
  return async (main, params, signal) => {
    const note = told(),
      answer = h("div", { id: "answer" });
    const form = h(
      "form",
      {
        class: "fields sheet",
        "aria-label": o.title,
        submit: (e) => {
          e.preventDefault();
          run(true);
        }
      },
      o.fields(params),
      h(
        "p",
        { class: "bar wide" },
        h("button", { type: "submit", class: "main", id: "go" }, o.go),
        o.more && o.more(() => form, note, signal)
      )
    );
    const run = (remember) =>
      during(form.querySelector("#go"), note, async () => {
        answer.replaceChildren();
        const values = valuesOf(form);
        const here = address(
          o.view,
          Object.fromEntries(Object.entries(values).filter(([name]) => name !== "source"))
        );
        if (remember && here !== location.hash) history.pushState(null, "", here);
        redraw(answer, await o.ask(values, signal));
      });
    main.append(h("h1", null, o.title), h("p", { class: "intro" }, o.intro), form, note, answer);
    if (o.ready(params)) await run(false);
  };
}
