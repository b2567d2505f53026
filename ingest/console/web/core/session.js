// Sign-in: a user with a name and password, or through the provider, whose session the
// browser keeps in a cookie that no script can read; or the admin token, which this tab
// keeps until it is closed. Nothing else in the console knows how requests are signed in.

import { api, call, signWith } from "./api.js";
import { byId, h, told, wrong } from "./dom.js";
import { during, field } from "./form.js";

const tokenKey = "penstock-admin-token";
const token = () => sessionStorage.getItem(tokenKey) || "";

// Scripts cannot see the cookie of a session: the mark says that there may be one, so that
// the page asks only then.
const mayHaveSession = "penstock-session";

let onLeave = () => {},
  onSignedIn = () => {};
let session = null; // who has signed in, as the gateway says

// may reports whether the reader may use an operation that the console has; the admin token
// may use all but those of a user.
export function may(operation) {
  if (!(operation in api)) return false;
  if (!session) return operation !== "setOwnPassword";
  return (
    session.operations.includes(operation) && (operation !== "setOwnPassword" || session.provider === "password")
  );
}

// mayChange reports whether the reader may change the records of accounts, mayAdmin whether
// accounts, tokens, credit and users as well. The admin token may do both.
export const mayChange = () => !session || session.role === "operator" || session.role === "admin";
export const mayAdmin = () => !session || session.role === "admin";

// ownAccount is the account of a reader who sees one alone, "" for others.
export const ownAccount = () => (session && session.account !== null ? String(session.account) : "");

export const signedIn = () => token() !== "" || session !== null;

// headers sign a request in: with the token, or as one of this page beside the cookie.
function headers() {
  if (token()) return { Authorization: "Bearer " + token() };
  return session ? { "X-CSRF-Token": session.csrf_token } : {};
}

// start sets the functions that run after a sign-in and at the end of a session.
export function start(signed, left) {
  onSignedIn = signed;
  onLeave = left;
  const refusal = () =>
    token()
      ? "Admin token refused. An account's token cannot sign in here."
      : "The session has ended. Sign in again.";
  signWith({ headers, refused: () => leave(refusal()) });
  byId("leave").addEventListener("click", async () => {
    if (session) await call("signOut", { accept: [401] }).catch(() => {});
    leave("");
  });
}

// leave ends the sign-in of this page and shows the form with the reason why, "" for none. A
// session that the cookie still has goes on.
export async function leave(why) {
  onLeave();
  const left = signedIn();
  sessionStorage.removeItem(tokenKey);
  session = null;
  byId("leave").hidden = true;
  if (!left && localStorage.getItem(mayHaveSession)) {
    session = await call("showSession", { accept: [401] }).then(
      (found) => found.data || null,
      () => null
    );
  }
  if (!session) localStorage.removeItem(mayHaveSession);
  session ? arrived() : signIn(why);
}

// arrived shows the name of the reader who has signed in, and continues.
function arrived() {
  byId("leave").hidden = false;
  const who = session ? session.name : "(admin token)";
  byId("leave").replaceChildren("Sign out", h("span", null, " " + who));
  byId("leave").title = who;
  onSignedIn();
}

// refusals are the texts for a failed sign-in through the provider, by the word in the address.
const refusals = {
  refused: "The provider refused the sign-in, or your role is not known here. The gateway's log has the reason.",
  unavailable: "The provider or the database does not answer. Try again later."
};

// signIn shows the form for signing in; the address has the view to continue with.
function signIn(why) {
  const back = new URLSearchParams(location.hash.split("?")[1] || "").get("sign_in");
  if (refusals[back]) {
    why = refusals[back];
    history.replaceState(null, "", location.pathname);
  }
  const note = told();
  const provider = h(
    "a",
    {
      href: api["startProviderSignIn"].split(" ")[1],
      hidden: true,
      click: () => localStorage.setItem(mayHaveSession, "1")
    },
    "Sign in through the provider"
  );
  if (why) note.append(wrong(new Error(why)));
  const withToken = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), note, () => enter(form.elements.token.value.trim()));
  };
  const withName = (e) => {
    e.preventDefault();
    const { name, password } = user.elements;
    during(user.querySelector("button"), note, async () => {
      const body = { name: name.value.trim(), password: password.value };
      session = (await call("signIn", { body, accept: [401] })).data || null;
      if (!session) throw new Error("The name or the password is wrong.");
      localStorage.setItem(mayHaveSession, "1");
      arrived();
    });
  };
  const user = h(
    "form",
    { class: "sheet", submit: withName, "aria-label": "Sign in with a name" },
    h("h2", null, "With name and password"),
    field("name", "Name", "text", "", { id: "name", required: true, autocomplete: "username" }),
    field("password", "Password", "password", "", {
      id: "password",
      required: true,
      autocomplete: "current-password"
    }),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Sign in"), provider),
    h("p", { class: "hint" }, "To add the first user, sign in with the admin token.")
  );
  const form = h(
    "form",
    { class: "sheet", submit: withToken, "aria-label": "Sign in with the admin token" },
    h("h2", null, "With the admin token"),
    field("token", "Admin token", "password", "", {
      id: "token",
      required: true,
      autocomplete: "off",
      hint: [
        "It is in the file admin-token of the gateway's data directory, unless PENSTOCK_ADMIN_TOKEN sets it. ",
        "This tab keeps the token until you close it."
      ]
    }),
    h("p", { class: "bar" }, h("button", { type: "submit" }, "Sign in with the token"))
  );
  byId("main").replaceChildren(h("div", { class: "narrow" }, h("h1", null, "Sign in"), note, user, form));
  user.elements.name.focus();
  call("showProvider").then(
    (found) => {
      provider.hidden = !found.data.enabled;
    },
    () => {}
  );
}

async function enter(text) {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error("The token must not contain spaces or non-ASCII characters.");
  sessionStorage.setItem(tokenKey, text);
  try {
    await call("getStatus"); // answered whatever is down
  } catch (error) {
    if (error.status !== 401) sessionStorage.removeItem(tokenKey);
    throw error;
  }
  arrived();
}
