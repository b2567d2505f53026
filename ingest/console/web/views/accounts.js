// Accounts: their tokens, credit and users. One has a page of its own.

import { forget } from "../core/accounts.js";
import { address, go, link } from "../core/address.js";
import { all, call } from "../core/api.js";
import { button, code, h, state, table, told, when } from "../core/dom.js";
import { ask, copyButton, during, editIn, field, overlay } from "../core/form.js";
import { plural, signed } from "../core/format.js";
import { section } from "../core/section.js";
import { may, mayAdmin, ownAccount } from "../core/session.js";
import { drift } from "./drift.js";
import { addLocation } from "./pickers.js";

// reasons describe the changes of a balance.
const reasons = {
  opened: "First credit, from the inventory",
  reset: "Set by the inventory",
  adjusted: "Changed by an admin",
  lookup: "Charge for a number lookup",
  sent: "Charge for a message",
  refund: "Refund of a part that no carrier accepted, or that was deleted"
};

// scopes has what each scope of a token permits.
const scopes = [
  ["messaging", "Send SMS, manage relays, look up numbers"],
  ["cellular", "Manage SIMs"],
  ["iot", "Manage devices, decoders and rules; read readings"],
  ["ledger", "Use ledgers"],
  ["webhook", "Post frames (network servers, devices)"],
  ["carrier", "Post inbound SMS, delivery receipts, call and usage records (carriers)"]
];

// permitted lists what a token permits, a scope a line.
const permitted = (names) =>
  names.length === scopes.length
    ? "Everything"
    : scopes.filter(([name]) => names.includes(name)).map(([name, text]) => h("div", { title: name }, text));

// newest is the text of the last token that was created in this page.
let newest = "";
export const lastToken = () => newest;

// showToken shows the text of a new token, which is not shown again, and its use.
export function showToken(made) {
  newest = made.token;
  overlay("API token", () => [
    h("p", null, "Copy it now. It is not shown again."),
    h("pre", { tabindex: 0, id: "new-token" }, made.token),
    h("p", { class: "bar" }, copyButton(made.token))
  ]);
}

// addToken asks for the scopes of a new token and shows it.
export function addToken(acct, again) {
  editIn(
    "Add API token",
    {
      go: "Add API token",
      fields: [
        h(
          "fieldset",
          { class: "wide" },
          h("legend", null, "The token may"),
          scopes.map(([name, text]) => field("scope_" + name, text, "check", true))
        )
      ],
      save: async (v) =>
        (
          await call("addToken", {
            body: { account: acct, scopes: scopes.map(([name]) => name).filter((name) => v["scope_" + name]) }
          })
        ).data
    },
    (made) => {
      showToken(made);
      again();
    }
  );
}

// addAccount asks for a new account; done(account) follows.
export function addAccount(done) {
  editIn(
    "Add account",
    {
      go: "Add account",
      fields: [
        field("name", "Name", "text", "", { required: true, hint: "It cannot be changed later." }),
        field("credit", "Credit", "number", "0", { hint: "For messages and lookups." })
      ],
      save: async (v) => {
        const body = { name: v.name, ...(Number(v.credit) ? { credit: Number(v.credit) } : {}) };
        const { data } = await call("addAccount", { body });
        await addLocation(String(data.id)); // for devices that appear with their first frame
        forget();
        return data;
      }
    },
    done
  );
}

const openAccount = (a) => go("accounts", { id: String(a.id) });

// topUp asks for an amount or a new balance, and the reason.
function topUp(acct, balance, again) {
  editIn(
    "Change credit",
    {
      go: "Change credit",
      intro: "The balance is " + plural(balance, "credit") + ".",
      aliases: { credit: "amount" },
      fields: [
        field(
          "mode",
          "Change",
          [
            ["add", "Add credits"],
            ["set", "Set the balance"]
          ],
          "add"
        ),
        field("amount", "Credits", "number", "", { required: true }),
        field("reason", "Reason", "text", "", { required: true, maxlength: 200, wide: true })
      ],
      save: (v) =>
        call("adjustCredit", {
          path: { account: String(acct) },
          body: { amount: v.mode === "set" ? Number(v.amount) - balance : Number(v.amount), reason: v.reason }
        })
    },
    again
  );
}

function list(main, params, signal) {
  main.append(
    h(
      "div",
      { class: "heading" },
      h("h1", null, "Accounts"),
      mayAdmin() && button("Add account", () => addAccount(openAccount), { class: "main" })
    ),
    section(
      "",
      async () => {
        const [names, balances] = await Promise.all([
          call("listAccounts", { signal }),
          may("listBalances") ? all("listBalances", { signal }) : []
        ]);
        const creditOf = new Map(balances.map((b) => [b.account, b.balance]));
        const rows = names.data.map((a) => [
          link("accounts", { id: String(a.id) }, a.name),
          creditOf.get(a.id) ?? 0,
          a.id
        ]);
        if (params.sort === "Credit") rows.sort((a, b) => a[1] - b[1]);
        const empty = ["No accounts yet. ", mayAdmin() && link("start", {}, "First steps")];
        return h(
          "div",
          { class: "half" },
          table("Accounts", ["Account", "Credit#", "ID#"], rows, empty, { compact: true })
        );
      },
      { signal, every: 30_000 }
    )
  );
}

// sentParts leads from a charge or a refund, whose reference is the ids of parts ("1" or "1-2"), to the sent messages
// of the account.
const sentParts = (acct, reference) =>
  link("messages", { account: acct, direction: "out" }, (reference.includes("-") ? "Parts " : "Part ") + reference);

function credit(acct, params, signal) {
  const part = section(
    "",
    async () => {
      const found = await call("listCredit", { query: { account: acct, cursor: params.cursor, limit: 50 }, signal });
      const rows = found.data.map((c) => [
        when(c.at),
        (c.credits > 0 ? "+" : "") + signed(c.credits),
        signed(c.balance),
        reasons[c.reason] || c.reason,
        c.reason === "sent" || c.reason === "refund"
          ? sentParts(acct, c.reference)
          : c.reference
      ]);
      const here = { id: params.id, tab: "credit" };
      return [
        h(
          "div",
          { class: "heading" },
          h("p", { class: "figure" }, plural(found.meta.balance, "credit")),
          mayAdmin() &&
            button("Change credit", () => topUp(acct, found.meta.balance, () => part.again()), { class: "main" })
        ),
        h("h2", null, "History"),
        table("History of credit", ["Time", "Credits#", "Balance#", "Reason", "For"], rows, "No changes yet.", {
          compact: true
        }),
        h(
          "p",
          { class: "bar" },
          params.cursor && link("accounts", here, "First page"),
          found.meta.next && link("accounts", { ...here, cursor: found.meta.next }, "Older")
        )
      ];
    },
    { signal, every: params.cursor ? 0 : 10_000 }
  );
  return part;
}

function tokens(acct, signal) {
  const note = told();
  const part = section(
    "",
    async () => {
      const found = (await call("listTokensOfAccounts", { query: { account: acct }, signal })).data;
      const revoke = (t) =>
        button(
          "Revoke",
          async (e) => {
            if (!(await ask("Revoke the token " + t.id + "?", "Requests with it are refused at once.", "Revoke")))
              return;
            during(e.target, note, async () => {
              await call("revokeToken", { path: { token_id: t.id } });
              part.again();
              return "The token is revoked.";
            });
          },
          { "aria-label": "Revoke the token " + t.id }
        );
      const rows = found.map((t) => [
        permitted(t.scopes),
        t.source,
        t.created_at && when(t.created_at),
        t.document && "Inventory document “" + t.document + "”",
        code(t.id),
        !t.document && revoke(t)
      ]);
      return [
        h(
          "div",
          { class: "heading" },
          h(
            "p",
            { class: "hint" },
            found.some((t) => t.source) && "URLs of senders that sign their posts end with the path name of a token."
          ),
          button("Add API token", () => addToken(acct, () => part.again()), { class: "main" })
        ),
        table(
          "Tokens",
          ["Permits", "Path name", "Created", "Declared by", "ID", "Change"],
          rows,
          "No tokens yet.",
          { compact: true }
        ),
        found.some((t) => t.document) &&
          h("p", { class: "hint" }, "Tokens of an inventory document are revoked in the document.")
      ];
    },
    { signal }
  );
  return [note, part];
}

function users(acct, signal) {
  return section(
    "",
    async () => {
      const { data } = await call("listUsers", { signal });
      return [
        table(
          "Users of the account",
          ["Name", "State", "Last sign-in"],
          data
            .filter((u) => String(u.account) === acct)
            .map((u) => [
              u.name,
              state(u.disabled ? "disabled" : "enabled"),
              u.signed_in_at ? when(u.signed_in_at) : "Never"
            ]),
          "No users of this account alone.",
          { compact: true }
        ),
        h("p", { class: "bar" }, link("users", {}, "All users"))
      ];
    },
    { signal }
  );
}

function settings(a, note) {
  const remove = async (e) => {
    if (
      !(await ask(
        "Delete the account " + a.name + "?",
        "An account with messages, history or credit cannot be deleted.",
        "Delete"
      ))
    )
      return;
    during(e.target, note, async () => {
      await call("removeAccount", { path: { account: String(a.id) } });
      forget();
      go("accounts", {});
    });
  };
  return [
    h("p", { class: "bar" }, button("Delete account", remove, { class: "danger" })),
    note
  ];
}

// lists are the views that show the records of one account: view, text, operation.
const lists = [
  ["devices", "Devices", "listDevicesOfAccounts"],
  ["alarms", "Alarms", "listAlarmsOfAccount"],
  ["rules", "Rules", "listRulesOfAccount"],
  ["decoders", "Decoders", "listDecodersOfAccounts"],
  ["messages", "Messages", "listMessages"],
  ["relays", "Relays", "listRelaysOfAccounts"],
  ["sims", "SIMs", "listSIMsOfAccounts"],
  ["ledgers", "Ledgers", "listLedgersOfAccounts"],
  ["events", "Events", "listEvents"],
  ["deliveries", "Deliveries", "listDeliveries"],
  ["jobs", "Jobs", "listJobsOfAccounts"]
];

async function one(main, params, signal) {
  const acct = params.id,
    found = (await call("listAccounts", { signal })).data.find((a) => String(a.id) === acct || a.name === acct);
  if (!found) return void main.append(h("p", { class: "empty" }, "This account does not exist."));
  const id = String(found.id),
    tab = params.tab || (mayAdmin() ? "" : "credit");
  const tabs = [
    mayAdmin() && ["", "API tokens"],
    may("listCredit") && ["credit", "Credit"],
    mayAdmin() && ["users", "Users"],
    mayAdmin() && ["settings", "Settings"]
  ].filter(Boolean);
  main.append(
    ownAccount() ? "" : h("p", { class: "back" }, link("accounts", {}, "← Accounts")),
    h("h1", null, found.name, " ", h("span", { class: "hint" }, "ID " + found.id)),
    h(
      "nav",
      { class: "bar spaced", "aria-label": "Of this account" },
      lists.filter(([, , needs]) => may(needs)).map(([view, text]) => link(view, { account: id }, text))
    ),
    h(
      "nav",
      { class: "tabs", "aria-label": "Parts of the account" },
      tabs.map(([name, text]) =>
        h(
          "a",
          { href: address("accounts", { id: acct, tab: name }), "aria-current": name === tab ? "page" : false },
          text
        )
      )
    )
  );
  const parts = {
    "": () => tokens(id, signal),
    credit: () => [credit(id, params, signal)],
    users: () => [users(id, signal)],
    settings: () => [drift(signal, found.name), ...settings(found, told())].filter(Boolean)
  };
  main.append(...(parts[tab] || parts[""])());
}

export const show = (main, params, signal) => {
  const own = ownAccount();
  return own
    ? one(main, { ...params, id: own, tab: "credit" }, signal)
    : (params.id ? one : list)(main, params, signal);
};
