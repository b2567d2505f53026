// The page of a relay: its messages and targets, its form, a trial, and its deletion.

import { account, accountNames } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, code, h, pairs, stamp, told } from "../core/dom.js";
import { actionWord } from "../core/filters.js";
import { ask, during, editIn, editor, field, linesOf, pick, reveal, valuesOf } from "../core/form.js";
import { section } from "../core/section.js";
import { may, mayChange, ownAccount } from "../core/session.js";
import { explained } from "./explain.js";
import { replayEvents } from "./events.js";
import { relayNumber } from "./relaynames.js";

const takes = { geo: "prefix", vmn: "number" };
const wants = {
  urls: "URLs, one per line",
  addresses: "Email addresses, one per line",
  labels: "Labels, one per line"
};
const placeholders = { geo: ["%m", "%o", "%d"], vmn: ["%msg", "%orig", "%dest"] };
const hints = {
  urls: (kind) => {
    const [text, sender, recipient] = placeholders[kind];
    return `${text} is the text, ${sender} the sender, ${recipient} the recipient. The API docs list all placeholders.`;
  },
  labels: () => "Applications read the messages under these labels."
};
const operations = {
  geo: {
    create: "createGeographicRelay",
    patch: "patchGeographicRelay",
    remove: "deleteGeographicRelay",
    actions: "listGeographicActions",
    attempt: "tryGeographicRelay"
  },
  vmn: {
    create: "createNumberRelay",
    patch: "patchNumberRelay",
    remove: "deleteNumberRelay",
    actions: "listNumberActions",
    attempt: "tryNumberRelay"
  }
};

// destinations shows the parameters of a relay that the reader may see.
export const destinations = (r) => [
  (r.parameters || []).map((p) => h("div", null, code(p))),
  r.hidden && r.parameters.length > 0 && h("div", { class: "hint" }, "paths are hidden from your role"),
  r.unopened && h("div", { class: "hint" }, "The record cannot be decrypted. Restore it or its key from a backup.")
];

const exampleOf = (r) =>
  r.kind === "geo" ? (r.number + "000000000000").slice(0, Math.max(12, r.number.length)) : r.number;

// actionFields are the inputs of an action and its parameters; r has the kind of relay. actions is [{ name,
// description, takes }].
function actionFields(actions, r) {
  const names = actions.map((a) => a.name),
    known = names.includes(r.action) ? names : [r.action, ...names];
  const action = field(
    "action",
    "Action",
    known.filter(Boolean).map((name) => [name, actionWord(name)]),
    r.action,
    { hint: " " }
  );
  const parameters = field("parameters", "Parameters", "area", r.parameters.join("\n"), {
    rows: Math.max(2, r.parameters.length),
    hint: " "
  });
  const follow = () => {
    const chosen = actions.find((a) => a.name === action.querySelector("select").value) || {
      description: "",
      takes: ""
    };
    action.querySelector(".hint").textContent =
      chosen.takes || !chosen.description ? "" : chosen.description + ".";
    parameters.querySelector(".hint").textContent = chosen.takes in hints ? hints[chosen.takes](r.kind) : "";
    reveal(parameters, Boolean(chosen.takes));
    parameters.querySelector("label").textContent = wants[chosen.takes] || "Parameters";
  };
  action.querySelector("select").addEventListener("change", follow);
  follow();
  return [action, parameters];
}

const takesOf = {
  http_get: "urls",
  http_post: "urls",
  dialogue_get: "urls",
  dialogue_post: "urls",
  inbound_gw: "urls",
  email: "addresses",
  ms_outlook: "addresses",
  desktopsms: "labels"
};

// addRelay asks for a new relay and opens its page.
export function addRelay(presets = {}) {
  const place = h("div", { class: "wide fields" });
  const number = field("number", "Virtual number", "tel", presets.number, {
    required: true,
    hint: "With the country code, digits alone."
  });
  const kind = field(
    "kind",
    "Takes",
    [
      ["vmn", "A virtual number"],
      ["geo", "Every number with a prefix"]
    ],
    presets.kind || "vmn"
  );
  const acctNow = () => ownAccount() || kind.closest("form")?.elements.account?.value || presets.account;
  const follow = async () => {
    const word = kind.querySelector("select").value,
      acct = acctNow();
    number.querySelector("label").textContent = word === "vmn" ? "Virtual number" : "Prefix";
    if (!acct) return;
    const { data } = await call(operations[word].actions, { as: acct });
    const actions = (
      Array.isArray(data) ? data : Object.entries(data).map(([name, description]) => ({ name, description }))
    ).map((a) => ({
      name: a.name || a.action,
      description: a.description || "",
      takes: takesOf[a.name || a.action] || ""
    }));
    place.replaceChildren(...actionFields(actions, { kind: word, action: "http_post", parameters: [] }));
  };
  kind.addEventListener("change", follow);
  editIn(
    "Add relay",
    {
      go: "Add relay",
      aliases: { prefix: "number" },
      fields: [
        !ownAccount() &&
          pick("account", "Account", accountNames, presets.account, { required: true, changed: follow }),
        kind,
        number,
        place
      ],
      save: async (v) => {
        const acct = acctNow(),
          body = { [takes[v.kind]]: v.number, action: v.action, parameters: linesOf(v.parameters) };
        return { acct, kind: v.kind, data: (await call(operations[v.kind].create, { body, as: acct })).data };
      }
    },
    ({ acct, kind: word, data }) => go("relays", { id: String(data.id), kind: word, account: String(acct) })
  );
  if (ownAccount()) follow();
}

// change is the form of a relay's action and condition.
function change(r, stored) {
  return editor({
    label: "Relay",
    go: "Save",
    fields: [
      actionFields(r.actions, r),
      field("filter", "Condition (empty: all messages)", "text", r.filter, {
        maxlength: 1024,
        wide: true,
        hint: ["Example: ", code('text startsWith "STOP"')]
      })
    ],
    save: async (v) => {
      await call(operations[r.kind].patch, {
        path: { relay: r.id },
        as: String(r.account),
        body: { action: v.action, parameters: linesOf(v.parameters), filter: v.filter || "" }
      });
      stored();
      return "Saved. The next message follows it; existing deliveries stay as they are.";
    }
  });
}

// trial shows which relay takes a message, and sends a test. current() is the relay as it is stored.
function trial(current, signal) {
  const r = current(),
    note = told(),
    answer = h("div");
  const form = h(
    "form",
    {
      class: "fields sheet",
      "aria-label": "Test this relay",
      submit: (e) => {
        e.preventDefault();
        run(form.querySelector("button"));
      }
    },
    field("to", "To", "tel", exampleOf(r), { required: true, hint: "For the preview only." }),
    field("from", "From", "text", "447700900123", { required: true }),
    field("text", "Text", "text", "Test"),
    h("p", { class: "bar wide" }, h("button", { type: "submit" }, "Preview"))
  );
  const run = (clicked) =>
    during(clicked, note, async () => {
      answer.replaceChildren(
        ...explained(await call("explainRelay", { body: valuesOf(form), signal }))
          .flat(3)
          .filter(Boolean)
      );
    });
  const send = async (e) => {
    const { from, text } = valuesOf(form),
      { action, parameters } = current();
    const sure = await ask(
      "Send a test through this relay?",
      parameters.length
        ? ["It is delivered as a message from " + from + " to:", ...parameters.map((p) => h("p", null, code(p)))]
        : "It takes the action of this relay as a message from " + from + ": " + actionWord(action) + ".",
      "Send"
    );
    if (!sure) return;
    during(e.target, note, async () => {
      const { data } = await call(operations[r.kind].attempt, {
        path: { relay: r.id },
        body: { from, text: text || "", send: true },
        as: String(r.account)
      });
      return data.sent ? "Sent. Its deliveries show the result." : "Not sent: " + (data.reason || data.outcome);
    });
  };
  form.querySelector(".bar").append(" ", button("Send a test", send));
  return [
    h("h2", null, "Test"),
    h(
      "p",
      { class: "hint" },
      "Preview shows which saved relay takes the message, and the exact request, and sends nothing. " +
        "A test is delivered to the target."
    ),
    form,
    note,
    answer
  ];
}

const pace = (r) =>
  [
    r.pace.concurrency && r.pace.concurrency + " requests at a time",
    r.pace.per_second && r.pace.per_second + " a second",
    r.pace.ordered && "in order"
  ]
    .filter(Boolean)
    .join(", ");

// facts shows a relay, without what the form has for those who may change it.
const facts = (r, changes = mayChange()) =>
  pairs([
    ["Account", account(r.account)],
    [
      "Takes",
      [
        "messages to the " + takes[r.kind] + " ",
        code(r.number),
        r.kind === "geo" ? ", unless a longer prefix or a virtual number takes them" : ""
      ]
    ],
    ["Action", !changes && actionWord(r.action)],
    ["To", (!changes || r.unopened) && destinations(r)],
    ["Condition", !changes && (r.filter ? code(r.filter) : "None")],
    ["SIM", r.iccid && link("sims", { id: r.iccid, account: String(r.account) }, r.iccid)],
    ["Pace", pace(r)],
    ["Changed", r.updated_at && [stamp(r.updated_at), " UTC"]],
    [
      "Declared by",
      r.document && [
        "Inventory document ",
        h("b", null, r.document),
        ". Changes you make here are kept when the document is applied again."
      ]
    ],
    ["ID", code(r.id)]
  ]);

export function showRelay(main, params, signal) {
  const sheet = h("div", { class: "sheet" }),
    title = h("h1", null, "Relay"),
    note = told();
  const load = async () => {
    const query = { account: params.account };
    const { data } = await call("showRelay", { path: { kind: params.kind, relay_id: params.id }, query, signal });
    title.replaceChildren("Relay " + relayNumber(data));
    return data;
  };
  const remove = async (e) => {
    const sure = await ask(
      "Delete this relay?",
      "Messages to its " + takes[params.kind] + " go to another matching relay, or stay without one.",
      "Delete"
    );
    if (sure)
      during(e.target, note, async () => {
        await call(operations[params.kind].remove, { path: { relay: params.id }, as: params.account });
        go("relays", {});
      });
  };
  const replayNote = told();
  const replay = (e) =>
    replayEvents(
      e.target,
      { said: replayNote, signal, again: () => {} },
      { kind: "sms", state: "unrouted", account: params.account, relay: params.id }
    );
  main.append(
    h("p", { class: "back" }, link("relays", {}, "← Relays")),
    title,
    h(
      "nav",
      { class: "bar spaced", "aria-label": "Of this relay" },
      link("deliveries", { account: params.account, relay: params.id, kind: "relay" }, "Deliveries")
    ),
    section(
      "",
      async () => {
        let r = await load();
        sheet.replaceChildren(facts(r));
        const again = async () => {
          r = await load();
          sheet.replaceChildren(facts(r));
        };
        return [
          sheet,
          mayChange() && [h("h2", null, "Settings"), change(r, again)],
          may("explainRelay") && trial(() => r, signal),
          may("replayEvents") && [
            h("h2", null, "Replay"),
            h("p", { class: "hint" }, "Messages that arrived without a relay and that this one takes now."),
            h("p", { class: "bar" }, button("Replay unrouted messages", replay)),
            replayNote
          ],
          may("deleteNumberRelay") && [
            h("p", { class: "bar" }, button("Delete relay", remove, { class: "danger" })),
            note
          ]
        ];
      },
      { signal }
    )
  );
}
