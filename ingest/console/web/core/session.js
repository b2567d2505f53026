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

let onLeave = () => {}, onSignedIn = () => {};
let session = null; // who has signed in, as the gateway says

// may reports whether the reader may use an operation; the admin token may use all but
// those of a user.
export const may = (operation) => (session ? session.operations.includes(operation) && (operation !== "setOwnPassword" || session.provider === "password") : operation !== "setOwnPassword");

// ownAccount is the account of a reader who sees one alone, "" for others.
export const ownAccount = () => (session && session.account !== null ? String(session.account) : "");

export const signedIn = () => token() !== "" || session !== null;

// headers sign a request in: with the token, or as one of this page beside the cookie.
const headers = () => token() ? { Authorization: "Bearer " + token() } : session ? { "X-CSRF-Token": session.csrf_token } : {};

// start says what to do when the operator has signed in, and when the session ends.
export function start(signed, left) {
  onSignedIn = signed;
  onLeave = left;
  signWith({ headers, refused: () => leave(token() ? "The gateway refused the token. Sign in again." : "The session has ended. Sign in again.") });
  byId("leave").addEventListener("click", async () => {
    if (session) await call("signOut", { accept: [401] }).catch(() => {});
    leave("");
  });
}

// leave forgets who has signed in and asks again; why is shown, "" for no reason. A
// session that the cookie still holds goes on.
export async function leave(why) {
  onLeave();
  const left = signedIn();
  sessionStorage.removeItem(tokenKey);
  session = null;
  byId("leave").hidden = true;
  if (!left && localStorage.getItem(mayHaveSession)) session = await call("showSession", { accept: [401] }).then((found) => found.data || null, () => null);
  if (!session) localStorage.removeItem(mayHaveSession);
  session ? arrived() : signIn(why);
}

// arrived shows who has signed in, and goes on.
function arrived() {
  byId("leave").hidden = false;
  byId("leave").textContent = session ? "Sign out " + session.name : "Sign out";
  onSignedIn();
}

// refusals are what the gateway says of a sign-in through the provider, in the address.
const refusals = { refused: "The provider did not let you in, or your role is not known here. The reason is in the gateway's log.", unavailable: "The provider or the database does not answer. Try again later." };

// signIn asks who it is; where to go on is in the address.
function signIn(why) {
  const back = new URLSearchParams(location.hash.split("?")[1] || "").get("sign_in");
  if (refusals[back]) {
    why = refusals[back];
    history.replaceState(null, "", location.pathname);
  }
  const said = told();
  const provider = h("a", { href: api["startProviderSignIn"].split(" ")[1], hidden: true, click: () => localStorage.setItem(mayHaveSession, "1") }, "Sign in through the provider");
  if (why) said.append(wrong(new Error(why)));
  const submit = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), said, () => enter(form.elements.token.value.trim()));
  };
  const withName = (e) => {
    e.preventDefault();
    const { name, password } = user.elements;
    during(user.querySelector("button"), said, async () => {
      session = (await call("signIn", { body: { name: name.value.trim(), password: password.value }, accept: [401] })).data || null;
      if (!session) throw new Error("The name or the password is wrong.");
      localStorage.setItem(mayHaveSession, "1");
      arrived();
    });
  };
  const user = h("form", { class: "sheet narrow", submit: withName, "aria-label": "Sign in with a name" }, h("h1", null, "Sign in"),
    field("name", "Name", "text", "", { id: "name", required: true, autocomplete: "username" }),
    field("password", "Password", "text", "", { type: "password", id: "password", required: true, autocomplete: "current-password" }),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Sign in"), provider), said);
  const form = h("form", { class: "sheet narrow", submit, "aria-label": "Sign in with the admin token" },
    field("token", "Admin token", "text", "", { type: "password", id: "token", required: true, autocomplete: "off" }),
    h("p", { class: "hint" }, "It is in the file admin-token of the data directory, or what PENSTOCK_ADMIN_TOKEN says. This tab keeps it until it is closed. With it you add the first user: penstock user add NAME --role admin."),
    h("p", { class: "bar" }, h("button", { type: "submit" }, "Sign in with the token")));
  byId("main").replaceChildren(user, form);
  user.elements.name.focus();
  call("showProvider").then((found) => { provider.hidden = !found.data.enabled; }, () => {});
}

async function enter(given) {
  if (!/^[\x21-\x7e]+$/.test(given)) throw new Error("A token has no blanks and no letters beyond ASCII.");
  sessionStorage.setItem(tokenKey, given);
  try {
    await call("getStatus"); // answered whatever is down
  } catch (error) {
    if (error.status !== 401) sessionStorage.removeItem(tokenKey);
    throw error;
  }
  arrived();
}
