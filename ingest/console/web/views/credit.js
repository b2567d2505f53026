// Credit: what accounts have left, and what changed it.

import { account } from "../core/accounts.js";
import { code, h, stamp, table } from "../core/dom.js";
import { listing } from "../core/list.js";
import { link } from "../core/router.js";
import { section } from "../core/section.js";
import { call } from "../core/api.js";
import { ownAccount } from "../core/session.js";

// What changed a balance, in words.
const reasons = { opened: "first credit, from the inventory", reset: "set by the inventory", lookup: "number lookup", sent: "message sent", refund: "refund of a part that was not sent" };

const movements = listing({
  view: "credit", op: "listCredit", title: "Credit", intro: "What changed the credit of one account, newest first.",
  empty: "No change yet. An inventory sets the first credit; messages and lookups are charged to it.",
  heads: ["Change", "At (UTC)", "Credits", "Balance after it", "Why", "For"], name: (c) => "No. " + c.sequence, key: (c) => c.sequence,
  detail: (c) => [code(c.id)], cells: (c) => [stamp(c.at), c.credits > 0 ? "+" + c.credits : c.credits, c.balance, reasons[c.reason] || c.reason, code(c.reference)],
});

function all(main, params, signal) {
  main.append(h("h1", null, "Credit"), h("p", { class: "intro" }, "What each account has left for messages and lookups. Open one for what changed it. An inventory sets the credit."),
    section("", async () => {
      const found = await call("listBalances", { query: { cursor: params.cursor, limit: 100 }, signal });
      return [table("Credit of accounts", ["Account", "Credits#", "Changes"], found.data.map((b) => [account(b.account), b.balance, link("credit", { account: String(b.account) }, "What changed it")]), "There is no account yet."),
        h("p", { class: "bar" }, params.cursor && link("credit", {}, "First page"), found.meta.next && link("credit", { cursor: found.meta.next }, "More accounts"))];
    }, { signal, every: 30_000 }));
}

export const show = (main, params, signal) => (params.account || ownAccount() ? movements : all)(main, params, signal);
