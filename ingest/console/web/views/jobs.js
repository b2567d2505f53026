// Jobs: long-running requests of accounts, the same ones in a row as a group.

import { account } from "../core/accounts.js";
import { link } from "../core/address.js";
import { code, due, h, long, pairs, stamp, state, table, when } from "../core/dom.js";
import { jobWords } from "../core/filters.js";
import { plural } from "../core/format.js";
import { listing } from "../core/list.js";

const wordsOf = (j) => jobWords[j.kind] || j.kind;

const simLink = (j) => j.iccid && link("sims", { id: j.iccid, account: String(j.account) }, j.iccid);

// itemsOf counts the items of a job.
const itemsOf = (j) =>
  plural(j.items.total, { "token.claim": "token", "sim.bulk_reassign": "SIM" }[j.kind] || "record");

// progress describes the state of a job.
function progress(j) {
  const stage = { queued: "waiting", processing: "in progress", completed: "done", failed: "failed" }[j.state];
  if (!j.items) return stage;
  if (j.items.done === 0 && (j.state === "queued" || j.state === "processing"))
    return itemsOf(j) + ", " + stage;
  const failures = j.items.failed.length;
  return j.items.done + " of " + j.items.total + " done" + (failures ? ", " + failures + " failed" : "");
}

// shownProgress is the progress of a job in the list, if it says more than the state.
const shownProgress = (j) =>
  j.items && (j.state !== "completed" || j.items.failed.length > 0) ? progress(j) : "";

// grouped joins consecutive completed jobs of one kind and account. The job of the address stays a row.
function grouped(jobs, open) {
  const groups = [];
  for (const j of jobs) {
    const last = groups.at(-1);
    if (
      last &&
      j.id !== open &&
      j.state === "completed" &&
      last.state === "completed" &&
      last.kind === j.kind &&
      last.account === j.account
    ) {
      last.others = [...(last.others || []), j];
    } else groups.push({ ...j });
  }
  return groups;
}

// nextAttempt says when a job is attempted again that has met an error.
const nextAttempt = (j) => j.error && j.due_at && h("div", { class: "hint" }, "next attempt ", due(j.due_at));

// repeats is the number of attempts of a job that needed more than one.
const repeats = (j) => (j.tries > 1 ? j.tries : "");

const detail = (j) => [
  pairs([
    ["Job", code(j.id)],
    ["Name", j.name],
    ["Account", account(j.account)],
    ["State", [state(j.state), " ", nextAttempt(j)]],
    ["Progress", progress(j)],
    ["SIM", simLink(j)],
    ["Created", [stamp(j.created_at), " UTC"]],
    ["Changed", [stamp(j.updated_at), " UTC"]],
    ["Attempts", j.tries],
    [j.state === "failed" ? "Failed because" : "Last error", long(j.error)]
  ]),
  j.items &&
    j.items.failed.length > 0 && [
      h("h3", null, "Failed items"),
      table(
        "Failed items of " + j.id,
        ["Item", "Reason"],
        j.items.failed.map((f) => [f.item, f.reason]),
        ""
      )
    ],
  j.others && [
    h("h3", null, "Other jobs of this group"),
    table(
      "Jobs like " + j.id,
      ["Job", "Created (UTC)", "Subject"],
      j.others.map((x) => [code(x.id), stamp(x.created_at), simLink(x) || x.name]),
      ""
    )
  ]
];

export const show = listing({
  view: "jobs",
  op: "listJobsOfAccounts",
  title: "Jobs",
  intro: "Long-running requests of accounts. Failed attempts are retried.",
  sorted: "-Created",
  empty: "No jobs match the filters.",
  name: wordsOf,
  detail,
  group: grouped,
  columns: [
    { head: "Job", cell: (j) => j.others && h("b", null, "×\u00a0" + (j.others.length + 1)), value: wordsOf },
    { head: "Created", cell: (j) => when(j.created_at), value: (j) => j.created_at, first: true },
    { head: "Account", cell: (j) => account(j.account), value: (j) => j.account_name, rest: true },
    {
      head: "Subject",
      cell: (j) => !j.others && (simLink(j) || j.name || (j.items && itemsOf(j))),
      value: (j) => j.iccid || j.name || (j.items ? itemsOf(j) : "")
    },
    { head: "State", cell: (j) => [state(j.state), nextAttempt(j)], value: (j) => j.state },
    { head: "Progress", cell: (j) => !j.others && shownProgress(j), value: shownProgress, rest: true },
    { head: "Attempts", cell: repeats, value: repeats, number: true, rest: true },
    { head: "Error", cell: (j) => long(j.error, 120), value: (j) => j.error }
  ]
});
