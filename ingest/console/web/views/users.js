// Users: who may sign in, and with which role.

import { account, accountNames } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, h, redraw, state, table, told, when, wrong } from "../core/dom.js";
import { ask, during, editIn, field, pick, reveal } from "../core/form.js";
import { capital } from "../core/format.js";

const roles = {
  viewer: "Reads everything except the texts of messages.",
  operator: "Reads everything, and changes devices, rules, relays and SIMs.",
  admin: "Also changes accounts, tokens, credit and users.",
  account: "Reads one account."
};

const providers = { password: "Password", oidc: "OpenID Connect" };

// roleFields are the inputs of a role, and of the account that the role "account" needs.
function roleFields(u) {
  const acct = pick("account", "Account", accountNames, u.account ? String(u.account) : "", { required: true });
  const role = field(
    "role",
    "Role",
    Object.keys(roles).map((name) => [name, capital(name)]),
    u.role,
    { hint: " " }
  );
  const follow = () => {
    const word = role.querySelector("select").value;
    reveal(acct, word === "account");
    role.querySelector(".hint").textContent = roles[word];
  };
  role.addEventListener("change", follow);
  follow();
  return [role, acct];
}

const secret = (text, hint, props) =>
  field("password", text, "password", "", { minlength: 12, autocomplete: "new-password", hint, ...props });

// addUser asks for a new user; done(text) follows.
function addUser(done) {
  editIn(
    "Add user",
    {
      go: "Add user",
      fields: [
        field("name", "Name", "text", "", { required: true }),
        roleFields({ role: "viewer" }),
        secret("Password", "12 characters or more.", { required: true })
      ],
      save: async (v) => (await call("addUser", { body: v })).data
    },
    (user) => done(user.name + " may sign in as " + user.role + ".")
  );
}

// changeUser asks for the role, the account and a new password of a user; done(text) follows.
function changeUser(u, done) {
  editIn(
    "Change " + u.name,
    {
      go: "Save",
      intro: "The user's sessions end at once.",
      fields: [roleFields(u), secret("New password", "12 characters or more. Empty: unchanged.")],
      save: async (v) => (await call("changeUser", { path: { name: u.name }, body: v })).data
    },
    (user) => done(user.name + " is changed.")
  );
}

export async function show(main, _, signal) {
  const note = told(),
    body = h("div");
  const effects = {
    Enable: "The user can sign in again.",
    Disable: "The user's sessions end at once.",
    Delete: "The user's sessions end at once."
  };
  const said = (text) => {
    note.replaceChildren(h("p", { class: "said" }, text));
    load();
  };
  const change = (clicked, verb, u, act, done) =>
    during(clicked, note, async () => {
      if (!(await ask(verb + " " + u.name + "?", effects[verb], verb))) return "";
      await act();
      load();
      return done;
    });
  const row = (u) => {
    const verb = u.disabled ? "Enable" : "Disable";
    return [
      u.name,
      h("span", { title: roles[u.role] }, capital(u.role)),
      u.account === null ? "All accounts" : account(u.account),
      providers[u.provider] || u.provider,
      state(u.disabled ? "disabled" : "enabled"),
      u.signed_in_at ? when(u.signed_in_at) : "Never",
      h(
        "span",
        { class: "bar tight" },
        u.provider === "password" && button("Change", () => changeUser(u, said), { "aria-label": "Change " + u.name }),
        button(
          verb,
          (e) =>
            change(
              e.target,
              verb,
              u,
              () => call("changeUser", { path: { name: u.name }, body: { disabled: !u.disabled } }),
              u.name + " is " + verb.toLowerCase() + "d."
            ),
          { "aria-label": verb + " " + u.name }
        ),
        button(
          "Delete",
          (e) =>
            change(
              e.target,
              "Delete",
              u,
              () => call("removeUser", { path: { name: u.name } }),
              u.name + " is deleted."
            ),
          { "aria-label": "Delete " + u.name, class: "danger" }
        )
      )
    ];
  };
  const load = async () => {
    try {
      const { data } = await call("listUsers", { signal });
      redraw(body, [
        table(
          "Users",
          ["Name", "Role", "Account", "Signs in with", "State", "Last sign-in", "Change"],
          data.map(row),
          "No users yet. Add one, and keep the admin token for programs.",
          { compact: true }
        )
      ]);
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(wrong(error));
    }
  };
  main.append(
    h(
      "div",
      { class: "heading" },
      h("h1", null, "Users"),
      button("Add user", () => addUser(said), { class: "main" })
    ),
    note,
    body
  );
  await load();
}
