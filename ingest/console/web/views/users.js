// Users: who may sign in, and with which role.

import { account, accountNames } from "../core/accounts.js";
import { call } from "../core/api.js";
import { button, h, redraw, state, table, told, when, wrong } from "../core/dom.js";
import { ask, during, editIn, field, pick } from "../core/form.js";

const roles = {
  viewer: "Reads everything except the texts of messages.",
  operator: "Reads everything, and changes devices, rules, relays and SIMs.",
  admin: "Also changes accounts, tokens, credit and users.",
  account: "Reads one account."
};

// addUser asks for a new user.
function addUser(again, note) {
  const acct = pick("account", "Account", accountNames, "", { required: true });
  const role = field("role", "Role", Object.keys(roles), "viewer", { hint: " " });
  const follow = () => {
    const word = role.querySelector("select").value;
    acct.hidden = word !== "account";
    role.querySelector(".hint").textContent = roles[word];
  };
  role.addEventListener("change", follow);
  follow();
  editIn(
    "Add a user",
    {
      go: "Add user",
      fields: [
        field("name", "Name", "text", "", { required: true }),
        role,
        acct,
        field("password", "Password", "password", "", {
          required: true,
          minlength: 12,
          autocomplete: "new-password",
          hint: "12 characters or more."
        })
      ],
      save: async (v) => (await call("addUser", { body: v })).data
    },
    (user) => {
      note.replaceChildren(h("p", { class: "said" }, user.name + " may sign in as " + user.role + "."));
      again();
    }
  );
}

export async function show(main, _, signal) {
  const note = told(),
    body = h("div");
  const change = (clicked, verb, u, act, done) =>
    during(clicked, note, async () => {
      const effect = verb === "Enable" ? "The user can sign in again." : "The user's sessions end at once.";
      if (!(await ask(verb + " " + u.name + "?", effect, verb))) return "";
      await act();
      load();
      return done;
    });
  const row = (u) => {
    const verb = u.disabled ? "Enable" : "Disable";
    return [
      u.name,
      u.role,
      u.account === null ? "all accounts" : account(u.account),
      u.provider,
      state(u.disabled ? "disabled" : "enabled"),
      u.signed_in_at ? when(u.signed_in_at) : "never",
      h(
        "span",
        { class: "bar tight" },
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
          "Remove",
          (e) =>
            change(
              e.target,
              "Remove",
              u,
              () => call("removeUser", { path: { name: u.name } }),
              u.name + " is removed."
            ),
          { "aria-label": "Remove " + u.name }
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
          ["Name", "Role", "Account", "Provider", "State", "Last sign-in", "Change"],
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
      button("Add user", () => addUser(load, note), { class: "main" })
    ),
    note,
    body
  );
  await load();
}
