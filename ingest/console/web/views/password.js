// The reader's own password.

import { call } from "../core/api.js";
import { h } from "../core/dom.js";
import { editor, field } from "../core/form.js";
import { leave } from "../core/session.js";
import { saved } from "../core/unsaved.js";

export function show(main) {
  const secret = (name, text, complete, more) =>
    field(name, text, "password", "", { required: true, autocomplete: complete, ...more });
  main.append(
    h("h1", null, "Change password"),
    h("p", { class: "intro" }, "Changing your password ends all of your sessions, including this one."),
    h(
      "div",
      { class: "narrow" },
      editor({
        label: "Change password",
        go: "Change password",
        free: true,
        fields: [
          secret("password", "Current password", "current-password"),
          secret("new_password", "New password", "new-password", { minlength: 12, hint: "12 characters or more." }),
          secret("again", "Repeat the new password", "new-password", { minlength: 12 })
        ],
        save: async (v, form) => {
          if (v.new_password !== v.again)
            throw Object.assign(new Error(), { fields: { again: "The two new passwords differ." } });
          await call("setOwnPassword", { body: { password: v.password, new_password: v.new_password } });
          saved(form);
          await leave("The password is changed. Sign in with the new one.");
        }
      })
    )
  );
}
