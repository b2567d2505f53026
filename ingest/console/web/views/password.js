// The reader's own password.

import { call } from "../core/api.js";
import { h, told } from "../core/dom.js";
import { during, field } from "../core/form.js";
import { leave } from "../core/session.js";

export function show(main) {
  const said = told();
  const submit = (e) => {
    e.preventDefault();
    const { password, new_password: fresh, again } = form.elements;
    during(form.querySelector("button"), said, async () => {
      if (fresh.value !== again.value) throw new Error("The two new passwords differ.");
      await call("setOwnPassword", { body: { password: password.value, new_password: fresh.value } });
      await leave("The password is changed. Sign in with the new one.");
    });
  };
  const secret = (name, text, complete, more) => field(name, text, "text", "", { type: "password", required: true, autocomplete: complete, ...more });
  const form = h("form", { class: "sheet narrow", submit, "aria-label": "Change the password" }, secret("password", "Present password", "current-password"),
    secret("new_password", "New password, 12 characters or more", "new-password", { minlength: 12 }), secret("again", "New password once more", "new-password", { minlength: 12 }),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Change the password")), said);
  main.append(h("h1", null, "Password"), h("p", { class: "intro" }, "Changing your password ends all of your sessions, this one too."), form);
}
