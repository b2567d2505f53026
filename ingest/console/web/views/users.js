// Who may sign in, and with which role.

import { call } from "../core/api.js";
import { button, h, redraw, stamp, state, table, told, wrong } from "../core/dom.js";
import { ask, during, field, valuesOf } from "../core/form.js";

const roles = ["viewer", "operator", "admin", "account"];

// addition is the form that adds a user.
function addition(said, again) {
  const submit = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), said, async () => {
      const { data } = await call("addUser", { body: valuesOf(form) });
      form.reset();
      again();
      return data.name + " may sign in as " + data.role + ".";
    });
  };
  const form = h("form", { class: "fields", submit, "aria-label": "Add a user" },
    field("name", "Name", "text", "", { required: true }), field("role", "Role", roles, "viewer"),
    field("account", "Account (for the role account)", "text", ""),
    field("password", "Password, 12 characters or more", "text", "", { type: "password", required: true, minlength: 12, autocomplete: "new-password" }),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Add")));
  return h("details", { class: "sheet" }, h("summary", null, "Add a user"), form);
}

export async function show(main, _, signal) {
  const said = told(), body = h("div");
  const change = (clicked, name, question, act, done) => during(clicked, said, async () => {
    if (!await ask(question, "The user's sessions end at once.", "Yes")) return "";
    await act();
    load();
    return done;
  });
  const row = (u) => [u.name, u.role, u.account === null ? "" : u.account, u.provider, state(u.disabled ? "disabled" : "enabled"), u.signed_in_at ? stamp(u.signed_in_at) : "never", [
    button(u.disabled ? "Enable" : "Disable", (e) => change(e.target, u.name, (u.disabled ? "Enable " : "Disable ") + u.name + "?",
      () => call("changeUser", { path: { name: u.name }, body: { disabled: !u.disabled } }), u.name + " is " + (u.disabled ? "enabled." : "disabled.")), { "aria-label": (u.disabled ? "Enable " : "Disable ") + u.name }), " ",
    button("Remove", (e) => change(e.target, u.name, "Remove " + u.name + "?", () => call("removeUser", { path: { name: u.name } }), u.name + " is removed."), { "aria-label": "Remove " + u.name })]];
  const load = async () => {
    try {
      const { data } = await call("listUsers", { signal });
      redraw(body, [table("Users", ["Name", "Role", "Account", "Provider", "State", "Last sign-in (UTC)", "Change"], data.map(row), "No user yet. Add one, and keep the admin token for machines.")]);
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(wrong(error));
    }
  };
  main.append(h("h1", null, "Users"), h("p", { class: "intro" }, "Who may sign in here. A viewer sees everything but the texts of messages, an operator also replays, an admin also manages users; the role account sees one account."),
    addition(said, load), said, body);
  await load();
}
