// Jobs: what accounts asked for that takes a while.

import { account } from "../core/accounts.js";
import { code, h, long, pairs, stamp, state, table } from "../core/dom.js";
import { cut, plural } from "../core/format.js";
import { listing } from "../core/list.js";
import { link } from "../core/router.js";

// What the kinds of jobs do, in words.
const kinds = {
  "sim.activate_sim": "activate a SIM", "sim.suspend_sim": "suspend a SIM", "sim.unsuspend_sim": "unsuspend a SIM", "sim.terminate_sim": "terminate a SIM",
  "sim.add_service": "add a service to a SIM", "sim.remove_service": "remove a service from a SIM", "sim.bulk_reassign": "give SIMs another subscriber",
  "sim.cdr_report": "file of usage records", "sim.usage_report": "usage report", "usage.block": "suspend a SIM at its limit", "sip.cdr": "archive of call records", "token.generate": "generate a token", "token.claim": "claim tokens", "token.metadata": "append metadata to a token",
};

const simLink = (j) => j.iccid && link("sims", { id: j.iccid, account: String(j.account) }, j.iccid);

// progress says how far a job is.
function progress(j) {
  const stage = { queued: "waits for its turn", processing: "under way", completed: "done", failed: "failed" }[j.state];
  if (!j.items) return stage;
  if (j.items.done === 0 && (j.state === "queued" || j.state === "processing")) return plural(j.items.total, "item") + ", " + stage;
  const failed = j.items.failed.length;
  return j.items.done + " of " + j.items.total + " done" + (failed ? ", " + failed + " failed" : "");
}

const detail = (j) => [pairs([["Job", code(j.id)], ["Does", kinds[j.kind] || j.kind], ["Name", j.name], ["Account", account(j.account)], ["State", state(j.state)], ["Progress", progress(j)], ["SIM", simLink(j)],
  ["Created", stamp(j.created_at)], ["Changed", stamp(j.updated_at)], ["Runs next", stamp(j.due_at)], ["Tries", j.tries], [j.state === "failed" ? "Failed because" : "Last fault", long(j.error)]]),
j.items && j.items.failed.length > 0 && [h("h3", null, "What failed"), table("Failed items of " + j.id, ["Item", "Reason"], j.items.failed.map((f) => [f.item, f.reason]), "")]];

export const show = listing({
  view: "jobs", op: "listJobsOfAccounts", title: "Jobs", intro: "What accounts asked for that takes a while, newest first: changes of SIMs, exports of their usage, and tokens of ledgers. A job that meets a fault is tried again until it ends.",
  empty: "No job matches. Changes of SIMs, exports and tokens that accounts order over REST would be here.",
  heads: ["Job", "Created (UTC)", "Account", "Does", "About", "State", "Progress", "Tries", "Error"], name: (j) => cut(j.id, 13), detail,
  cells: (j) => [stamp(j.created_at), account(j.account), kinds[j.kind] || j.kind, simLink(j) || j.name || (j.items && plural(j.items.total, "item")), state(j.state), progress(j), j.tries, long(cut(j.error, 120))],
});
