// Sign-in: the admin token, which this tab keeps until it is closed and sends to
// the gateway alone. Nothing else in the console knows how requests are signed in.

import { call, signWith } from "./api.js";
import { byId, h, told, wrong } from "./dom.js";
import { during, field } from "./form.js";

const tokenKey = "penstock-admin-token";
const token = () => sessionStorage.getItem(tokenKey) || "";

let onLeave = () => {}, onSignedIn = () => {};

export const signedIn = () => token() !== "";

// start says what to do when the operator has signed in, and when the session ends.
export function start(signed, left) {
  onSignedIn = signed;
  onLeave = left;
  signWith({ headers: () => ({ Authorization: "Bearer " + token() }), refused: () => leave("The gateway refused the token. Sign in again.") });
  byId("leave").addEventListener("click", () => leave(""));
}

// leave forgets the token and asks for another; why is shown, "" for no reason.
export function leave(why) {
  onLeave();
  sessionStorage.removeItem(tokenKey);
  byId("leave").hidden = true;
  signIn(why);
}

// signIn asks for the token; where to go on is in the address.
function signIn(why) {
  const said = told();
  if (why) said.append(wrong(new Error(why)));
  const submit = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), said, () => enter(form.elements.token.value.trim()));
  };
  const form = h("form", { class: "sheet narrow", submit, "aria-label": "Sign in" }, h("h1", null, "Sign in"),
    field("token", "Admin token", "text", "", { type: "password", id: "token", required: true, autocomplete: "current-password" }),
    h("p", { class: "hint" }, "It is in the file admin-token of the data directory, or what PENSTOCK_ADMIN_TOKEN says. This tab keeps it until it is closed."),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Sign in")), said);
  byId("main").replaceChildren(form);
  form.elements.token.focus();
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
  byId("leave").hidden = false;
  onSignedIn();
}
