// Drift: fields that the console or the API has changed since an inventory document declared them.

import { link } from "../core/address.js";
import { call } from "../core/api.js";
import { code, h, parted, state, table, when } from "../core/dom.js";
import { cut } from "../core/format.js";
import { section } from "../core/section.js";
import { may } from "../core/session.js";

// text writes a value of a document.
const text = (value) =>
  value === null ? "Nothing" : code(cut(typeof value === "object" ? JSON.stringify(value) : String(value), 120));

// field shows a path; one of a SIM leads to the SIM.
const field = (d) => {
  const [, iccid, name] = /^sims\.(\d+)\.(.+)$/.exec(d.path) || [];
  return iccid
    ? [link("sims", { id: iccid, account: d.account }, "SIM " + iccid), ", ", name.replace("current_state", "state")]
    : h("code", null, parted(d.path));
};

// command shows a command, which breaks before its options only.
const command = (parts) =>
  h(
    "code",
    null,
    parts.map((part, i) => [i > 0 && " ", h("span", { class: "nowrap" }, part)])
  );

const row = (d, single) => [
  ...(single ? [] : [d.account]),
  field(d),
  d.deleted ? state("changed", "deleted") : text(d.declared),
  d.deleted ? "" : text(d.present),
  [d.changed_at && when(d.changed_at), d.changed_by && " by " + d.changed_by],
  d.reset && command(["penstock apply -f FILE", "--reset " + d.reset, "--account " + d.account])
];

// drift shows the fields of one or all accounts that differ from their documents. It is empty if the
// reader may not see them.
export function drift(signal, account) {
  if (!may("getInventoryDrift")) return "";
  return section(
    "Differences from the inventory",
    async () => {
      const found = await call("getInventoryDrift", { signal }),
        rows = found.data.filter((d) => !account || d.account === account),
        missing = found.missing.filter((m) => !account || m.startsWith("account " + account + ":"));
      const heads = ["Field", "Declared", "Now", "Changed", "Command that resets it"];
      return [
        table(
          "Drift",
          account ? heads : ["Account", ...heads],
          rows.map((d) => row(d, account)),
          "Everything is as declared.",
          { compact: true }
        ),
        missing.length > 0 && [
          h("h3", null, "Missing"),
          h("p", { class: "hint" }, "Declared, but gone. The next apply creates them again."),
          h("ul", null, missing.map((m) => h("li", null, m)))
        ]
      ];
    },
    {
      signal,
      hint:
        "Changed in the console, over the API or by a job. The next apply keeps these values. " +
        "The command resets all SIMs (or relays, rules, credit) of the account, not only this one."
    }
  );
}
