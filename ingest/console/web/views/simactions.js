// The actions of a SIM: activate, suspend, resume, limit, assign, terminate.

import { call } from "../core/api.js";
import { button, h } from "../core/dom.js";
import { ask, during, editIn, field, pick, reveal } from "../core/form.js";
import { mayChange } from "../core/session.js";
import { subscribersOf } from "./pickers.js";

const megabyte = 1e6;
const decimal = { inputmode: "decimal", pattern: "\\d+(\\.\\d+)?", title: "A number such as 500 or 1.5" };

// subscriberFields pick a subscriber or describe a new one.
function subscriberFields(acct, required) {
  const details = h(
    "div",
    { class: "fields wide" },
    field("forename", "Forename", "text", "", { required: true }),
    field("surname", "Surname", "text", "", { required: true }),
    field("address", "Address", "text", "", { required: true }),
    field("post_code", "Post code", "text", "", { required: true }),
    field("contact_no", "Phone", "tel", "", { required: true })
  );
  const chosen = pick("subscriber", "Subscriber", () => subscribersOf(acct), "", {
    blank: "New subscriber",
    changed: (id) => {
      reveal(details, !id);
    }
  });
  return [chosen, details, required];
}

const subscriberIn = (v) =>
  v.subscriber || {
    forename: v.forename,
    surname: v.surname,
    address: v.address,
    post_code: v.post_code,
    contact_no: v.contact_no
  };
const aliases = Object.fromEntries(
  ["forename", "surname", "address", "post_code", "contact_no"].map((name) => ["subscriber." + name, name])
);

function activate(s, done) {
  editIn(
    "Activate SIM " + s.iccid,
    {
      go: "Activate",
      aliases,
      fields: [
        subscriberFields(String(s.account)),
        field("service_4g", "4G", "check", true),
        field("service_5g", "5G", "check", false)
      ],
      save: (v) =>
        call("activateSIM", {
          path: { iccid: s.iccid },
          as: String(s.account),
          body: { subscriber: subscriberIn(v), service_4g: v.service_4g, service_5g: v.service_5g }
        })
    },
    () => done("Activation of " + s.iccid + " requested.")
  );
}

function assign(s, done) {
  editIn(
    "Subscriber of SIM " + s.iccid,
    {
      go: "Assign",
      aliases: { target_subscriber: "subscriber" },
      intro: "The subscriber who holds the SIM.",
      fields: subscriberFields(String(s.account)),
      save: async (v) => {
        let target = v.subscriber;
        if (!target)
          target = (await call("registerSubscriber", { body: subscriberIn(v), as: String(s.account) })).data.id;
        return call("reassignSIMs", {
          body: { target_subscriber: target, iccids: [s.iccid] },
          as: String(s.account)
        });
      }
    },
    () => done("Assignment of " + s.iccid + " requested.")
  );
}

const recipientsOf = async (s) =>
  (await call("showSIM", { path: { iccid: s.iccid }, query: { account: s.account } })).data.recipients;

const caps = [
  ["notify", "Notify the recipients"],
  ["block", "Notify the recipients and suspend the SIM"],
  ["none", "Nothing"]
];

async function limit(s, done) {
  const recipients = s.recipients || (await recipientsOf(s).catch(() => null));
  if (document.querySelector("dialog[open]")) return; // the button was pressed twice
  const inMB = (n) => (n ? String(n / megabyte) : "");
  editIn(
    "Limit SIM " + s.iccid,
    {
      go: "Set limit",
      aliases: { monthly_usage_limit: "limit", monthly_usage_limit_warning: "warning", cap_limit: "cap" },
      fields: [
        field("limit", "Monthly limit in MB", "text", inMB(s.limit.monthly), {
          ...decimal,
          hint: "Empty: no limit."
        }),
        field("warning", "Warn at MB", "text", inMB(s.limit.warning), {
          ...decimal,
          hint: "Empty: no warning."
        }),
        field("cap", "At the limit", caps, s.limit.cap, {
          hint: recipients && !recipients.length && "This SIM has no recipients; nobody would be notified."
        })
      ],
      save: (v) =>
        call("setUsageLimit", {
          path: { iccid: s.iccid },
          as: String(s.account),
          body: {
            monthly_usage_limit: Math.round(Number(v.limit || 0) * megabyte),
            monthly_usage_limit_warning: Math.round(Number(v.warning || 0) * megabyte),
            cap_limit: v.cap
          }
        })
    },
    () => done("The limit of " + s.iccid + " is set.")
  );
}

// requests has the actions without a form.
const requests = {
  suspend: ["Suspend", "suspendSIM", "It has no service until it is resumed."],
  unsuspend: ["Resume", "unsuspendSIM", "It has service again."],
  terminate: ["Terminate", "terminateSIM", "A terminated SIM cannot be used again."]
};

function request(s, name, note, done) {
  const [text, op, consequence] = requests[name];
  return async (e) => {
    if (!(await ask(text + " SIM " + s.iccid + "?", consequence, text))) return;
    during(e.target, note, async () => {
      await call(op, { path: { iccid: s.iccid }, as: String(s.account) });
      done();
      return text + " requested for " + s.iccid + ".";
    });
  };
}

// simActions are the buttons of a SIM. Results are written into note; done() follows.
export function simActions(s, note, done, { full } = {}) {
  if (!mayChange() || s.state === "terminated") return "";
  if (s.job_id) return h("span", { class: "hint" }, "change in progress");
  const told = (text) => {
    note.replaceChildren(h("p", { class: "said" }, text));
    done();
  };
  const act = (text, click, { danger, of = "" } = {}) =>
    button(text, click, { "aria-label": text + of + " SIM " + s.iccid, class: danger ? "danger" : false });
  return h(
    "span",
    { class: full ? "bar" : "bar tight wraps" },
    s.state === "pending" && act("Activate", () => activate(s, told)),
    s.state === "active" && act("Suspend", request(s, "suspend", note, done)),
    s.state === "suspended" && act("Resume", request(s, "unsuspend", note, done)),
    act("Set limit", () => limit(s, told), { of: " of" }),
    s.state !== "pending" && act("Assign to…", () => assign(s, told), { of: " a subscriber:" }),
    full && s.state !== "pending" && act("Terminate", request(s, "terminate", note, done), { danger: true })
  );
}
