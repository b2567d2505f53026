// The choice of the range of a chart: a span that ends now, or two times.

import { go } from "../core/address.js";
import { button, h } from "../core/dom.js";
import { field, valuesOf } from "../core/form.js";

// rangeForm opens the view with the range that the reader chooses. o has:
//   view, params  the view and its address
//   spans         [[value of the parameter span, text]]
//   chosen        the value of the span that is shown, "" for two times
//   range         { from, to }, which is shown
export function rangeForm({ view, params, spans, chosen, range }) {
  const here = { id: params.id, account: params.account };
  const buttons = spans.map(([name, text]) =>
    button(text, () => go(view, { ...here, span: name }), {
      "aria-pressed": String(name === chosen),
      "aria-label": "Last " + text
    })
  );
  const other = h(
    "form",
    {
      class: "fields",
      "aria-label": "Other range",
      submit: (e) => {
        e.preventDefault();
        go(view, { ...here, ...valuesOf(e.target) });
      }
    },
    field("from", "From (UTC)", "time", range.from, { required: true }),
    field("to", "To (UTC)", "time", range.to, { required: true }),
    h("p", { class: "bar beside" }, h("button", { type: "submit" }, "Show this range"))
  );
  return h(
    "div",
    { class: "bar" },
    buttons,
    h("details", { open: Boolean(params.from) }, h("summary", null, "Other range"), other)
  );
}
