// Ledgers, their entries, and tokens whose history is proven in the reader's browser.

import { account, accountNames } from "../core/accounts.js";
import { address, go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { code, h, pairs, pre, stamp, state, table, told, when } from "../core/dom.js";
import { during, field, pick } from "../core/form.js";
import { cut, duration, json, plural } from "../core/format.js";
import { climb, idOf, possible, rootOf, signedBy } from "../core/proof.js";
import { section } from "../core/section.js";
import { ownAccount } from "../core/session.js";
import { generateButton, tokenButtons } from "./ledgeractions.js";

const words = { generated: "Generated", claimed: "Claimed", metadata: "Metadata added" };
const tokenLink = (acct, id, text) => link("ledgers", { token: id, account: String(acct) }, text || cut(id, 16));

// finder opens a token by its id or its text. The text does not leave the page.
function finder(params) {
  const note = told();
  const submit = (e) => {
    e.preventDefault();
    during(form.querySelector("button"), note, async () => {
      const text = form.elements.token.value.trim(),
        id = /^[0-9a-f]{64}$/.test(text) ? text : "";
      if (!id && !possible())
        throw new Error(
          "Without TLS this page cannot compute the token's ID. Enter the SHA-256 of its text, in hex."
        );
      go("ledgers", { token: id || (await idOf(text)), account: ownAccount() || form.elements.account.value });
    });
  };
  const form = h(
    "form",
    { class: "fields sheet", submit, "aria-label": "Find a token" },
    field("token", "Token or its ID", "text", "", { required: true }),
    !ownAccount() && pick("account", "Account", accountNames, params.account, { required: true }),
    h("p", { class: "bar beside" }, h("button", { type: "submit" }, "Show token"))
  );
  return [h("h2", null, "Find a token"), form, note];
}

function list(main, params, signal) {
  main.append(
    h("h1", null, "Ledgers"),
    h(
      "p",
      { class: "intro" },
      "A ledger records the tokens of an account. Its head is signed, so tampering is detectable."
    ),
    section(
      "",
      async () => {
        const found = await call("listLedgersOfAccounts", {
          query: { account: params.account, cursor: params.cursor, limit: 100 },
          signal
        });
        const rows = found.data.map((l) => [
          [
            link("ledgers", { ledger: l.id, account: String(l.account) }, l.name || l.id),
            l.name && l.name !== l.id && h("div", { class: "hint" }, l.id)
          ],
          account(l.account),
          l.entries,
          l.signed === l.entries ? state("all signed") : l.signed + " signed",
          l.claims || "Any number",
          l.expiry ? "After " + duration(l.expiry) : "Never",
          l.declared ? "" : state("no longer declared")
        ]);
        return [
          table(
            "Ledgers",
            ["Ledger", "Account", "Entries#", "Signed", "Claims per token#", "Tokens expire", "Note"],
            rows,
            "No ledgers yet. Declare them in the inventory (ledgers:).",
            { compact: true }
          ),
          h(
            "p",
            { class: "bar" },
            params.cursor && link("ledgers", {}, "First page"),
            found.meta.next && link("ledgers", { cursor: found.meta.next }, "More ledgers")
          )
        ];
      },
      { signal, every: 15_000 }
    ),
    ...finder(params)
  );
}

// idOrPrefix is a search for a token: the id of its text, or the start of an id as it stands.
const idOrPrefix = (text) => (/^[0-9a-f]{1,64}$/.test(text) || !possible() ? text : idOf(text));

// tokens lists the tokens of a ledger, the latest first.
function tokens(params, signal, here) {
  const search = h(
    "form",
    {
      class: "filters",
      "aria-label": "Filters",
      submit: (e) => {
        e.preventDefault();
        go("ledgers", { ...here, q: e.target.elements.q.value.trim() });
      }
    },
    field("q", "Token, or start of its ID", "text", params.q, { type: "search" }),
    h("p", { class: "bar" }, h("button", { type: "submit" }, "Apply"), params.q && link("ledgers", here, "Clear"))
  );
  const load = async () => {
    const found = await call("listTokensOfLedger", {
      path: { ledger_id: params.ledger },
      query: { account: params.account, q: params.q && (await idOrPrefix(params.q)), cursor: params.cursor, limit: 50 },
      signal
    });
    const rows = found.data.map((t) => [
      tokenLink(params.account, t.id),
      when(t.generated_at),
      t.expires_at ? stamp(t.expires_at.slice(0, 10)) : "Never",
      t.claimed,
      t.remaining ?? "Any number"
    ]);
    return [
      table(
        "Tokens",
        ["Token", "Generated", "Expires", "Claims used#", "Claims left#"],
        rows,
        params.q ? "No tokens match." : "No tokens yet.",
        { compact: true }
      ),
      h(
        "p",
        { class: "bar" },
        params.cursor && link("ledgers", here, "First page"),
        found.meta.next && link("ledgers", { ...here, q: params.q, cursor: found.meta.next }, "Older")
      )
    ];
  };
  return [search, section("", load, { signal, every: params.cursor ? 0 : 10_000 })];
}

// entries lists the entries of a ledger, newest first.
function entries(params, signal, here) {
  const load = async () => {
    const found = await call("listEntriesOfLedger", {
      path: { ledger_id: params.ledger },
      query: { account: params.account, cursor: params.cursor, limit: 50 },
      signal
    });
    const rows = found.data.map((e) => [
      e.sequence,
      words[e.type] || e.type,
      tokenLink(params.account, e.token),
      when(e.at),
      h("code", { title: e.hash }, cut(e.hash, 16))
    ]);
    return [
      table("Entries", ["No.", "Entry", "Token", "Time", "Leaf hash"], rows, "No entries yet.", { compact: true }),
      h(
        "p",
        { class: "bar" },
        params.cursor && link("ledgers", here, "First page"),
        found.meta.next && link("ledgers", { ...here, cursor: found.meta.next }, "Older")
      )
    ];
  };
  return section("", load, { signal, every: params.cursor ? 0 : 10_000 });
}

// ledgerOf returns a ledger of an account; undefined if there is none.
async function ledgerOf(acct, id, signal) {
  const { data } = await call("listLedgersOfAccounts", { query: { account: acct, limit: 1000 }, signal });
  return data.find((l) => l.id === id);
}

// signatures says how many entries of a ledger are signed.
const signatures = (l) =>
  plural(l.entries, "entry", "entries") + ", " + (l.signed === l.entries ? "all" : l.signed) + " signed";

// head shows the signed head of a ledger, and writes the ledger's name into title.
const head = (params, signal, title) =>
  section(
    "",
    async () => {
      const ledger = await ledgerOf(params.account, params.ledger, signal);
      if (!ledger) return h("p", { class: "empty" }, "The account has no such ledger.");
      title.replaceChildren(ledger.name || ledger.id);
      return h(
        "details",
        null,
        h("summary", null, "Signed head (" + signatures(ledger) + ")"),
        pairs([
          ["Account", account(ledger.account)],
          ["Hash", code(ledger.hash)],
          ["Entries", ledger.entries],
          ["Signed", ledger.signed]
        ]),
        ledger.checkpoint
          ? pre(ledger.checkpoint)
          : h("p", { class: "hint" }, "Not signed yet. Opening a token signs it."),
        h(
          "p",
          { class: "hint" },
          "Keep a copy of the checkpoint elsewhere: penstock ledger verify --head compares the ledger with it."
        )
      );
    },
    { signal }
  );

// ledgerPage shows one ledger: its tokens, or all entries, and its signed head.
function ledgerPage(main, params, signal) {
  const here = { ledger: params.ledger, account: params.account, tab: params.tab };
  const title = h("h1", null, "Ledger");
  const shown = params.tab === "entries" ? "entries" : "";
  const tab = (name, text) =>
    h(
      "a",
      { href: address("ledgers", { ...here, tab: name }), "aria-current": name === shown && "page" },
      text
    );
  const lists = [shown ? entries(params, signal, here) : tokens(params, signal, here)].flat();
  main.append(
    h("p", { class: "back" }, link("ledgers", {}, "← Ledgers")),
    h("div", { class: "heading" }, title, generateButton(params, () => lists.at(-1).again())),
    head(params, signal, title),
    h("nav", { class: "tabs", "aria-label": "Ledger" }, tab("", "Tokens"), tab("entries", "All entries")),
    ...lists
  );
}

// verified computes the path of an entry, shows it, and reports whether it leads to the signed root.
async function verified(e, head, place) {
  const steps = await climb(e.leaf, e.sequence, head.size, e.proof),
    fits = steps[0].hash === e.hash && steps.at(-1).hash === head.root;
  const formula = (s, i) => {
    if (i === 0) return "SHA-256 of a zero byte and the entry";
    return (
      "SHA-256 of a one byte, " +
      (s.side === "left" ? "the hash of the proof, the hash above" : "the hash above, the hash of the proof")
    );
  };
  const rows = steps.map((s, i) => [
    i === 0 ? "leaf" : String(i),
    formula(s, i),
    s.other ? code(s.other) : "",
    code(s.hash)
  ]);
  const text = fits
    ? "Verified in this browser: the entry leads to the signed root in " + plural(e.proof.length, "step") + "."
    : "The entry does not lead to the signed root.";
  place.replaceChildren(
    fits ? "" : h("p", { class: "wrong" }, text),
    h(
      "details",
      null,
      h("summary", null, "Steps of the proof"),
      fits && h("p", { class: "said" }, text),
      table("Proof of entry " + e.sequence, ["Step", "Computed as", "Hash of the proof", "Result"], rows, ""),
      h("p", { class: "hint" }, "The last result must be the root " + head.root + ".")
    )
  );
  return fits;
}

// verdict shows whether the ledger's key signed the head and the list of entries.
async function verdict(t, fits, place) {
  const head = await signedBy(t.head.checkpoint, t.head.key),
    list = await signedBy(t.all, t.head.key);
  const root = await rootOf(t.entries.map((e) => e.hash));
  const matches =
    t.head.checkpoint.startsWith([t.head.origin, t.head.size, t.head.root, ""].join("\n")) &&
    t.all.startsWith([t.head.origin + "/token/" + t.id, t.head.size, t.entries.length, root, ""].join("\n"));
  const bad = !matches || head === false || list === false || fits.includes(false);
  const unchecked =
    "Every entry leads to the root. This browser has no Ed25519; check the signature with penstock ledger verify.";
  const good =
    "Verified in this browser: the head is signed by the ledger's key, every entry leads to its root, " +
    "and the list of entries is complete.";
  const text = bad ? "The history of this token is NOT proven." : head === null ? unchecked : good;
  place.replaceChildren(
    h("p", { class: bad ? "wrong" : head === null ? "note" : "said", role: bad ? "alert" : false }, text)
  );
}

function proofs(t) {
  const place = h("div", { role: "status" }),
    places = t.entries.map(() => h("div", null, h("p", { class: "hint" }, possible() ? "Verifying…" : "")));
  const unreadable = (error) =>
    place.replaceChildren(h("p", { class: "wrong", role: "alert" }, "The proof cannot be read: " + error.message));
  if (possible())
    Promise.all(t.entries.map((e, i) => verified(e, t.head, places[i])))
      .then((fits) => verdict(t, fits, place))
      .catch(unreadable);
  else
    place.append(
      h(
        "p",
        { class: "note" },
        "Without TLS the browser computes no hashes. The gateway verified the proofs; " +
          "penstock ledger verify checks the whole ledger."
      )
    );
  const entry = (e, i) =>
    h(
      "div",
      { class: "sheet" },
      h("h3", null, "Entry " + e.sequence + ": " + (words[e.type] || e.type).toLowerCase()),
      pairs([
        ["Time", [stamp(e.at), " UTC"]],
        ["Leaf hash", code(e.hash)]
      ]),
      h("pre", { tabindex: 0, class: "full" }, json(e.data)),
      places[i]
    );
  return [
    place,
    t.entries.map(entry),
    h("h3", null, "Signed head of the ledger"),
    pre(t.head.checkpoint),
    h("h3", null, "Verifying key"),
    pre(t.head.key),
    h("h3", null, "Signed list of the token's entries"),
    pre(t.all)
  ];
}

function token(main, params, signal) {
  const note = told(),
    back = h("p", { class: "back" }, link("ledgers", {}, "← Ledgers"));
  const page = section(
    "",
    async () => {
      const { data: t } = await call("showLedgerToken", {
        path: { token_id: params.token },
        query: { account: params.account },
        signal
      });
      const ledger = await ledgerOf(t.account, t.ledger, signal).catch(() => null),
        ledgerName = (ledger && ledger.name) || t.ledger,
        ledgerLink = (text) => link("ledgers", { ledger: t.ledger, account: String(t.account) }, text);
      back.replaceChildren(ledgerLink("← " + ledgerName));
      return [
        h(
          "div",
          { class: "sheet" },
          pairs([
            ["ID", code(t.id)],
            ["Ledger", ledgerLink(ledgerName)],
            ["Account", account(t.account)],
            ["Generated", [stamp(t.created_at), " UTC"]],
            ["Expires", t.expires_at ? [stamp(t.expires_at), " UTC"] : "Never"],
            ["Claims used", String(t.claimed)],
            ["Claims left", t.remaining === null ? "Any number" : String(t.remaining)],
            ["Claims need", t.needs_private ? "The private token" : "No private token"],
            ["Metadata", t.metadata && pre(json(t.metadata))]
          ])
        ),
        h("h2", null, "History and proofs"),
        proofs(t)
      ];
    },
    { signal }
  );
  main.append(
    back,
    h(
      "div",
      { class: "heading" },
      h("h1", null, "Token " + cut(params.token, 16)),
      tokenButtons(params, note, () => page.again())
    ),
    note,
    page
  );
}

export const show = (main, params, signal) =>
  (params.token ? token : params.ledger ? ledgerPage : list)(main, params, signal);
