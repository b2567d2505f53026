// Ledgers, their entries, and tokens whose history is proven in the reader's browser.

import { account, accounts } from "../core/accounts.js";
import { call } from "../core/api.js";
import { code, h, long, pairs, pre, stamp, state, table, told } from "../core/dom.js";
import { during, field } from "../core/form.js";
import { cut, duration, json, plural } from "../core/format.js";
import { climb, idOf, possible, rootOf, signedBy } from "../core/proof.js";
import { go, link } from "../core/router.js";
import { section } from "../core/section.js";
import { ownAccount } from "../core/session.js";

const words = { generated: "token made", claimed: "claimed", metadata: "metadata added" };
const tokenLink = (acct, id, text) => link("ledgers", { token: id, account: String(acct) }, text || cut(id, 16));

// finder leads to a token by its text, which does not leave the page, or by its id.
function finder(params) {
  const said = told();
  const submit = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), said, async () => {
      const text = form.elements.token.value.trim(), id = /^[0-9a-f]{64}$/.test(text) ? text : "";
      if (!id && !possible()) throw new Error("This page was not loaded over TLS, so it cannot compute the token's id. Give the id: the SHA-256 of its text, in hex.");
      go("ledgers", { token: id || await idOf(text), account: ownAccount() || form.elements.account.value.trim() });
    });
  };
  const form = h("form", { class: "fields sheet", submit, "aria-label": "Find a token" }, field("token", "Token (its text, or its id)", "text", "", { required: true }),
    !ownAccount() && field("account", "Account (name or id)", "text", params.account, { required: true, list: "accounts" }), h("datalist", { id: "accounts" }),
    h("p", { class: "bar" }, h("button", { type: "submit", class: "main" }, "Show the token")), said);
  if (!ownAccount()) accounts().then((all) => form.querySelector("datalist").append(...all.map((a) => h("option", { value: a.name }))));
  return form;
}

function list(main, params, signal) {
  main.append(h("h1", null, "Ledgers"), h("p", { class: "intro" }, "Ledgers of tokens. Every entry is a leaf of a Merkle tree whose head is signed, so that a change of the past shows. Open a ledger for its entries, or a token for its history with proofs."), finder(params),
    section("", async () => {
      const found = await call("listLedgersOfAccounts", { query: { account: params.account, cursor: params.cursor, limit: 100 }, signal });
      const rows = found.data.map((l) => [link("ledgers", { ledger: l.id, account: String(l.account) }, l.name || l.id), code(l.id), account(l.account), l.entries, l.signed === l.entries ? state("all signed") : l.signed + " signed",
        l.claims || "any number", l.expiry ? "after " + duration(l.expiry) : "never", l.declared ? "" : state("declared no more")]);
      return [table("Ledgers", ["Ledger", "Id", "Account", "Entries#", "Signed", "Claims of a token", "Tokens expire", "Note"], rows, "There is no ledger yet. An inventory declares those of an account (ledgers:, docs/inventory.md)."),
        h("p", { class: "bar" }, params.cursor && link("ledgers", {}, "First page"), found.meta.next && link("ledgers", { cursor: found.meta.next }, "More ledgers"))];
    }, { signal, every: 15_000 }));
}

function entries(main, params, signal) {
  const path = { ledger_id: params.ledger }, query = { account: params.account };
  main.append(h("p", null, link("ledgers", {}, "← All ledgers")), h("h1", null, "Ledger " + params.ledger),
    section("Signed head", async () => {
      const one = (await call("listLedgersOfAccounts", { query: { ...query, limit: 1000 }, signal })).data.find((l) => l.id === params.ledger);
      return one ? [h("div", { class: "sheet" }, pairs([["Account", account(one.account)], ["Name", one.name], ["Hash", code(one.hash)], ["Entries", one.entries], ["Signed", one.signed]])), one.checkpoint ? pre(one.checkpoint) : h("p", { class: "hint" }, "Not signed yet: the first look at a token signs it.")]
        : h("p", { class: "empty" }, "The account has no such ledger.");
    }, { signal, hint: "The checkpoint of the tree. Keep one elsewhere, and penstock ledger verify --head shows whether the past was changed since." }),
    section("Entries", async () => {
      const found = await call("listEntriesOfLedger", { path, query: { ...query, cursor: params.cursor, limit: 50 }, signal });
      const rows = found.data.map((e) => [e.sequence, stamp(e.at), words[e.type] || e.type, tokenLink(params.account, e.token), long(cut(e.hash, 16))]);
      return [table("Entries", ["No.#", "At (UTC)", "What", "Token", "Leaf hash"], rows, "No entry yet. A token that is made, claimed or annotated adds one."),
        h("p", { class: "bar" }, params.cursor && link("ledgers", { ledger: params.ledger, account: params.account }, "Newest"), found.meta.next && link("ledgers", { ledger: params.ledger, account: params.account, cursor: found.meta.next }, "Older"))];
    }, { signal, every: params.cursor ? 0 : 10_000 }));
}

// verified computes the path of an entry and says whether it leads to the signed root.
async function verified(e, head, place) {
  const steps = await climb(e.leaf, e.sequence, head.size, e.proof), fits = steps[0].hash === e.hash && steps.at(-1).hash === head.root;
  const rows = steps.map((s, i) => [i === 0 ? "leaf" : String(i), i === 0 ? "SHA-256 of a zero byte and the entry" : "SHA-256 of a one byte, " + (s.side === "left" ? "the hash of the proof, the hash above" : "the hash above, the hash of the proof"), s.other ? code(s.other) : "", code(s.hash)]);
  place.replaceChildren(h("p", { class: fits ? "said" : "wrong" }, fits ? "Verified in this browser: the entry leads to the signed root in " + plural(e.proof.length, "step") + "." : "The entry does not lead to the signed root."),
    h("details", null, h("summary", null, "The steps of the proof"), table("Proof of entry " + e.sequence, ["Step", "Computed as", "Hash of the proof", "Result"], rows, ""), h("p", { class: "hint" }, "The last result has to be the root " + head.root + ".")));
  return fits;
}

// verdict says whether the head and the list of entries are signed by the ledger's key.
async function verdict(t, all, place) {
  const head = await signedBy(t.head.checkpoint, t.head.key), rest = await signedBy(t.all, t.head.key);
  const says = t.head.checkpoint.startsWith([t.head.origin, t.head.size, t.head.root, ""].join("\n")) &&
    t.all.startsWith([t.head.origin + "/token/" + t.id, t.head.size, t.entries.length, await rootOf(t.entries.map((e) => e.hash)), ""].join("\n"));
  const bad = !says || head === false || rest === false || all.includes(false);
  const text = bad ? "The history of this token is NOT proven." : head === null ? "Every entry leads to the root. This browser has no Ed25519, so the signature was not checked here; penstock ledger verify does."
    : "Verified in this browser: the head is signed by the ledger's key, every entry leads to its root, and the key says that these are all entries of the token.";
  place.replaceChildren(h("p", { class: bad ? "wrong" : head === null ? "note" : "said", role: bad ? "alert" : false }, text));
}

function proofs(t) {
  const place = h("div", { role: "status" }), places = t.entries.map(() => h("div", null, h("p", { class: "hint" }, possible() ? "Verifying…" : "")));
  if (possible()) Promise.all(t.entries.map((e, i) => verified(e, t.head, places[i]))).then((all) => verdict(t, all, place)).catch((error) => place.replaceChildren(h("p", { class: "wrong", role: "alert" }, "The proof cannot be read: " + error.message)));
  else place.append(h("p", { class: "note" }, "This page was not loaded over TLS, so the browser computes no hashes. The gateway has verified the proofs; penstock ledger verify checks the whole ledger."));
  return [place, t.entries.map((e, i) => h("div", { class: "sheet" }, h("h3", null, "Entry " + e.sequence + ": " + (words[e.type] || e.type)), pairs([["At (UTC)", stamp(e.at)], ["Leaf hash", code(e.hash)]]), pre(json(e.data)), places[i])),
    h("h3", null, "Signed head of the ledger"), pre(t.head.checkpoint), h("p", { class: "hint" }, "Verifying key: ", code(t.head.key)), h("h3", null, "Signed: these are all entries of the token"), pre(t.all)];
}

function token(main, params, signal) {
  main.append(h("p", null, link("ledgers", {}, "← All ledgers")), h("h1", null, "Token"), section("", async () => {
    const { data: t } = await call("showLedgerToken", { path: { token_id: params.token }, query: { account: params.account }, signal });
    return [h("div", { class: "sheet" }, pairs([["Id", code(t.id)], ["Ledger", link("ledgers", { ledger: t.ledger, account: String(t.account) }, t.ledger)], ["Account", account(t.account)], ["Made (UTC)", stamp(t.created_at)], ["Expires", stamp(t.expires_at) || "never"],
      ["Claimed", plural(t.claimed, "time")], ["Claims left", t.remaining === null ? "any number" : String(t.remaining)], ["Private token", t.needs_private ? "needed for claims" : "not needed"], ["Metadata", t.metadata && pre(json(t.metadata))]])),
    h("h2", null, "History, with its proofs"), proofs(t)];
  }, { signal }));
}

export const show = (main, params, signal) => (params.token ? token : params.ledger ? entries : list)(main, params, signal);
