// The form of a rule: its devices, condition and action, with a trial on the last frames of a
// device.

import { account, accountNames } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { all, call } from "../core/api.js";
import { button, code, h, pairs, redraw, stamp, state, told, when } from "../core/dom.js";
import { ask, during, editor, field, linesOf, pick, reveal, valuesOf } from "../core/form.js";
import { actionWord } from "../core/filters.js";
import { capital, cut, plural } from "../core/format.js";
import { may, mayChange, ownAccount } from "../core/session.js";
import { keyName } from "./deviceparts.js";
import { muteIn } from "./mutes.js";
import { decodersOf, devicesOf, loadScopes, locationsOf, scopeText } from "./pickers.js";
import { triedRules } from "./tryrule.js";

const comparisons = [
  [">", "is above"],
  [">=", "is at least"],
  ["<", "is below"],
  ["<=", "is at most"],
  ["==", "equals"],
  ["!=", "differs from"]
];
const triggers = [
  ["reading", "A reading arrives"],
  ["silent", "A device is silent"],
  ["event", "A device sends an event"]
];
const durations = [
  ["5m", "5 min"],
  ["10m", "10 min"],
  ["30m", "30 min"],
  ["1h", "1 h"],
  ["2h", "2 h"],
  ["6h", "6 h"],
  ["24h", "24 h"],
  ["168h", "7 days"]
];
const durationWord = (text) => new Map(durations).get(text) || text;
const actionNames = [
  ["email", "Send an email"],
  ["http_post", actionWord("http_post")],
  ["http_get", actionWord("http_get")],
  ["sms", "Send an SMS"]
];
const targets = {
  email: "Email addresses, one per line",
  http_post: "URLs, one per line",
  http_get: "URLs, one per line",
  sms: "Numbers, one per line"
};
const examples = {
  reading: "Such as values.temperature > 30 and hour < 6.",
  event: 'Such as event.type == "status" and event.battery < 20.'
};
const scopes = [
  ["", "All devices"],
  ["ids", "One device"],
  ["decoder_id", "Devices with a decoder"],
  ["location_id", "Devices at a location"]
];

// ruleSwitch is the switch that enables or disables a rule; the state alone for a reader who may not
// change it. Results are written into place; again() follows.
export function ruleSwitch(r, place, again) {
  if (!mayChange()) return state(r.enabled ? "enabled" : "disabled");
  return button(
    r.enabled ? "Enabled" : "Disabled",
    (e) =>
      during(e.target, place, async () => {
        await call("patchRule", { path: { rule_id: r.id }, body: { enabled: !r.enabled }, as: String(r.account) });
        r.enabled = !r.enabled;
        again();
        return (r.name || r.id) + " is " + (r.enabled ? "enabled." : "disabled.");
      }),
    {
      role: "switch",
      "aria-checked": String(r.enabled),
      "aria-label": (r.name || r.id) + " enabled",
      class: "switch"
    }
  );
}

// isPlain reports whether the form can show the devices of a rule: all, or one choice of one kind.
function isPlain(devices) {
  const [[name, value] = [""], ...others] = Object.entries(devices);
  return !others.length && scopes.some(([word]) => word === name) && (name !== "ids" || value.length === 1);
}

// simple takes a condition apart that compares one value with a number; null for others.
function simple(when) {
  const found = /^values(?:\.(\w+)|\[("[^"\\]+")\]) (>=|<=|==|!=|>|<) (-?\d+(?:\.\d+)?)$/.exec(when || "");
  return found && { key: found[1] || JSON.parse(found[2]), compare: found[3], limit: found[4] };
}

// conditionText describes the condition of a rule; an expression that the form cannot show is code.
export function conditionText(r) {
  const compared = r.on === "reading" && simple(r.when);
  if (compared) return keyName(compared.key) + " " + new Map(comparisons).get(compared.compare) + " " + compared.limit;
  if (r.on === "silent") return "Silent for " + durationWord(r.silent_for);
  return r.when ? code(cut(r.when, 80)) : "Every " + (r.on === "event" ? "event" : "frame");
}

// valueOfKey writes the value of a key in a condition.
const valueOfKey = (key) => (/^[a-z_]\w*$/i.test(key) ? "values." + key : "values[" + JSON.stringify(key) + "]");

// durationFields are the choice of a duration, and the input of one that is not offered. none is the text of an empty
// duration, if it may be empty.
function durationFields(name, text, value, none) {
  const offered = [...(none ? [["", none]] : []), ...durations];
  const kept = offered.some(([option]) => option === value) ? [] : [[value, value]];
  return [
    field(name, text, [...offered, ...kept, ["other", "Other…"]], value),
    field(name + "_other", text + " (other)", "text", "", { required: true, hint: "Such as 90s, 15m or 36h." })
  ];
}
const durationIn = (v, name) => (v[name] === "other" ? v[name + "_other"] : v[name]) || "";

// bodyOf returns the rule of a form. What the form hides is empty in the rule; what it cannot show stays as in
// original.
function bodyOf(v, original) {
  const rule = {
    name: v.name,
    on: v.on,
    enabled: original ? original.enabled : true,
    when: v.key ? valueOfKey(v.key) + " " + v.compare + " " + v.limit : v.when || "",
    clear: v.clear || "",
    for: durationIn(v, "for"),
    silent_for: durationIn(v, "silent_for"),
    repeat: v.repeat || "never"
  };
  if (v.scope === "kept") rule.devices = original.devices;
  else if (v.scope) rule.devices = { [v.scope]: v.scope === "ids" ? [v.ids] : v[v.scope] };
  else if (original) rule.devices = {};
  if (original && (rule.when || v.on === "silent")) rule.batch = {}; // only rules that forward every frame have one
  const first = original && original.actions[0] && original.actions[0].action === v.action ? original.actions[0] : {};
  const action = { ...first, action: v.action, parameters: linesOf(v.parameters), originator: v.originator };
  rule.actions = [action, ...(original ? original.actions.slice(1) : [])];
  return rule;
}

// trialDevices returns the devices to try a rule on, or a text instead.
const trialDevices = async (acct) => {
  const list = await devicesOf(acct);
  return list.length ? list : [["", "No device"]];
};

// keysOf returns the keys that the decoders of an account map.
const keysOf = async (acct) =>
  [...new Set((await all("listDecodersOfAccounts", { query: { account: acct } })).flatMap((d) => d.keys))].sort();

function ruleForm(r, params, signal) {
  const acctNow = () =>
    r ? String(r.account) : ownAccount() || (form.elements.account && form.elements.account.value) || "";
  const compared = r && simple(r.when),
    devices = (r && r.devices) || {};
  const kept = !isPlain(devices),
    scope = kept ? "kept" : Object.keys(devices)[0] || "";
  const first = (r && r.actions[0]) || { action: "email", parameters: [] };
  const forwards = r && r.on !== "silent" && !r.when;
  const scopePlaces = h("div", { class: "field" }),
    keys = h("datalist", { id: "keys" }),
    trialDevice = h("div", { change: (e) => e.stopPropagation() }); // not an edit of the rule
  const drawScope = () => {
    const kind = form.elements.scope.value,
      acct = acctNow(),
      options = { required: true, blank: "None" };
    scopePlaces.hidden = !kind || kind === "kept";
    scopePlaces.replaceChildren(
      ...{
        ids: () => [pick("ids", "Device", () => devicesOf(acct), (devices.ids || [])[0] || params.device, options)],
        decoder_id: () => [pick("decoder_id", "Decoder", () => decodersOf(acct), devices.decoder_id, options)],
        location_id: () => [pick("location_id", "Location", () => locationsOf(acct), devices.location_id, options)],
        kept: () => [],
        "": () => []
      }[kind]()
    );
  };
  const ofAccount = () => {
    const acct = acctNow();
    drawScope();
    trialDevice.replaceChildren(
      pick("trial_device", "Device", () => trialDevices(acct), params.device, { only: true })
    );
    if (acct)
      keysOf(acct).then(
        (list) => keys.replaceChildren(...list.map((key) => h("option", { value: key }))),
        () => {}
      );
  };
  const answer = h("div"),
    note = told();
  const trial = (e) =>
    during(e.target, note, async () => {
      if (!form.reportValidity()) return "";
      const v = valuesOf(form),
        rule = bodyOf(v, r);
      if (!v.trial_device) throw new Error("This account has no device to test the rule on.");
      const found = (
        await call("tryRule", {
          as: acctNow(),
          body: { device_id: v.trial_device, last: 10, rule },
          signal
        })
      ).data;
      const matched = found.filter((f) => f.matched).length;
      answer.replaceChildren(
        h(
          "p",
          { class: "said" },
          found.length
            ? "The condition is met by " +
                matched +
                " of " +
                plural(found.length, "frame") +
                ". Nothing was saved or sent."
            : "The device has no frames for this rule."
        ),
        ...(found.length ? triedRules(found, rule.when || "") : [])
      );
    });
  const form = editor({
    label: "Rule",
    go: r ? "Save" : "Add rule",
    aliases: {
      when: "limit",
      for: "for_other",
      silent_for: "silent_for_other",
      "actions.0.parameters": "parameters",
      "actions.0": "parameters",
      actions: "parameters",
      "actions.0.originator": "originator",
      "devices.ids": "ids",
      "devices.decoder_id": "decoder_id",
      "devices.location_id": "location_id"
    },
    fields: [
      !r &&
        !ownAccount() &&
        pick("account", "Account", accountNames, params.account, { required: true, changed: () => ofAccount() }),
      field("name", "Name", "text", r ? r.name : "", { required: true }),
      field("on", "When", triggers, r ? r.on : "reading"),
      durationFields("silent_for", "Silent for", (r && r.silent_for) || "24h"),
      field(
        "scope",
        "Devices",
        kept ? [["kept", scopeText(r)], ...scopes] : scopes,
        params.device && !r ? "ids" : scope
      ),
      scopePlaces,
      field(
        "mode",
        "Condition",
        [
          ["simple", "Compare a reading"],
          ["expression", "An expression"],
          ["none", "None: every frame"]
        ],
        forwards ? "none" : r && r.on !== "silent" && !(compared && r.on === "reading") ? "expression" : "simple"
      ),
      field("key", "Reading", "text", compared && compared.key, {
        required: true,
        list: "keys",
        hint: "The key, such as temperature."
      }),
      keys,
      field(
        "compare",
        "Comparison",
        comparisons.map(([sign, text]) => [sign, capital(text)]),
        compared && compared.compare
      ),
      field("limit", "Threshold", "text", compared && compared.limit, {
        required: true,
        inputmode: "decimal",
        pattern: "-?\\d+(\\.\\d+)?",
        title: "A number such as 30 or -2.5"
      }),
      field("when", "Expression", "area", r ? r.when : "", {
        rows: 2,
        required: true,
        hint: " "
      }),
      field("clear", "Clears when", "text", r ? r.clear : "", { hint: "Empty: when the condition is no longer met." }),
      durationFields("for", "Met for at least", (r && r.for) || "", "At once"),
      field(
        "repeat",
        "Repeat the action while raised",
        [
          ["never", "Never"],
          ["1h", "Each hour"],
          ["24h", "Each day"],
          ["always", "With every frame"],
          ...(r && !["never", "1h", "24h", "always"].includes(r.repeat) ? [[r.repeat, r.repeat]] : [])
        ],
        r ? r.repeat : "never"
      ),
      field("action", "Action", actionNames, first.action),
      field("parameters", targets[first.action], "area", first.parameters.join("\n"), { rows: 2, required: true }),
      field("originator", "Originator of the SMS", "text", first.originator),
      h(
        "fieldset",
        { class: "wide" },
        h("legend", null, "Test"),
        h(
          "div",
          { class: "filters" },
          trialDevice,
          h("p", { class: "bar" }, button("Test on the last 10 frames", trial))
        ),
        note,
        answer
      )
    ],
    save: async (v) => {
      const acct = acctNow(),
        rule = bodyOf(v, r);
      const { data, warnings } = r
        ? await call("patchRule", { path: { rule_id: r.id }, body: rule, as: acct })
        : await call("createRule", { body: rule, as: acct });
      if (!r) setTimeout(() => go("rules", { id: data.id, account: acct, created: "1" }));
      return ["Saved.", ...(warnings || [])].join("\n");
    }
  });
  const box = (name) => form.elements[name].closest(".field");
  const revealDuration = (name, shown) => {
    reveal(box(name), shown);
    reveal(box(name + "_other"), shown && form.elements[name].value === "other");
  };
  // offer offers or hides an option; instead is chosen if a hidden one was.
  const offer = (select, option, offered, instead) => {
    const found = select.querySelector("option[value=" + option + "]");
    found.hidden = found.disabled = !offered;
    if (!offered && select.value === option) select.value = instead;
  };
  const follow = () => {
    const { on, mode, action, repeat } = form.elements,
      silent = on.value === "silent";
    offer(mode, "simple", on.value !== "event", "expression");
    offer(repeat, "always", !silent, "never");
    const conditional = !silent && mode.value !== "none",
      isSimple = mode.value === "simple";
    revealDuration("silent_for", silent);
    reveal(box("mode"), !silent);
    for (const name of ["key", "compare", "limit"]) reveal(box(name), conditional && isSimple);
    reveal(box("when"), conditional && !isSimple);
    reveal(box("clear"), conditional && (!isSimple || Boolean(r && r.clear)));
    revealDuration("for", conditional);
    reveal(box("repeat"), conditional || silent);
    reveal(box("originator"), action.value === "sms");
    box("when").querySelector(".hint").textContent = examples[on.value];
    box("parameters").querySelector("label").textContent = targets[action.value];
  };
  form.addEventListener("change", (e) => {
    follow();
    if (e.target.name === "scope") drawScope();
  });
  follow();
  ofAccount();
  return form;
}

function remove(r, note) {
  return button(
    "Delete rule",
    async (e) => {
      const sure = await ask("Delete " + (r.name || r.id) + "?", "Its alarms stay listed.", "Delete");
      if (sure)
        during(e.target, note, async () => {
          await call("deleteRule", { path: { rule_id: r.id }, as: String(r.account) });
          go("rules", {});
        });
    },
    { class: "danger" }
  );
}

// further returns the actions that the form does not show.
const further = (r) =>
  r.actions.length > 1 && [
    r.actions
      .slice(1)
      .map((a) => h("div", null, new Map(actionNames).get(a.action) || a.action, ": ", a.parameters.join(", "))),
    h("div", { class: "hint" }, "Further actions stay as they are when you save.")
  ];

const moment = (text) => [stamp(text), " UTC, ", when(text)];

const batchText = ({ count, every }) =>
  [count && "up to " + plural(count, "frame"), every && "what arrives in " + every].filter(Boolean).join(", or ") +
  " in one request";

export async function showRule(main, params, signal) {
  main.append(h("p", { class: "back" }, link("rules", {}, "← Rules")));
  if (params.id === "new") return void main.append(h("h1", null, "Add rule"), ruleForm(null, params, signal));
  const r = (await all("listRulesOfAccount", { query: { account: params.account }, signal })).find(
    (x) => x.id === params.id
  );
  if (!r) return void main.append(h("p", { class: "empty" }, "This rule does not exist any more."));
  await loadScopes([r], signal); // for the name of a decoder or a location
  const last = await call("listAlarmsOfAccount", {
    query: { account: r.account, rule_id: r.id, limit: 1 },
    signal
  }).catch(() => ({ data: [] }));
  if (signal.aborted) return;
  const note = told();
  const say = (text) => note.replaceChildren(h("p", { class: "said" }, text));
  const enabled = h("span");
  const drawSwitch = () => redraw(enabled, [ruleSwitch(r, note, drawSwitch)]);
  drawSwitch();
  main.append(
    h(
      "div",
      { class: "heading" },
      h("h1", null, r.name || r.id),
      h(
        "p",
        { class: "bar" },
        mayChange() &&
          button("Mute", () => muteIn({ account: r.account, rule_id: r.id, rule_name: r.name || r.id }, say)),
        enabled
      )
    ),
    params.created ? h("p", { class: "said" }, "Rule added. It applies to frames that arrive from now on.") : "",
    h(
      "nav",
      { class: "bar spaced", "aria-label": "Of this rule" },
      link("alarms", { account: String(r.account), rule_id: r.id }, "Alarms"),
      link("deliveries", { account: String(r.account), relay: r.id, kind: "rule" }, "Deliveries"),
      !mayChange() && may("tryRule") && link("tryrule", { account: String(r.account), rule_id: r.id }, "Test a rule")
    ),
    note,
    h(
      "div",
      { class: "sheet" },
      pairs([
        ["Account", account(r.account)],
        ["Changed", moment(r.updated_at)],
        ["Last raised", last.data.length > 0 && moment(last.data[0].raised_at)],
        ["Clears when", code(r.clear)],
        ["Batch", r.batch && batchText(r.batch)],
        ["Further actions", further(r)],
        ["Failures", r.failures.count > 0 && r.failures.count + " since it was changed; the last: " + r.failures.last],
        ["ID", code(r.id)]
      ])
    )
  );
  if (mayChange())
    main.append(ruleForm(r, params, signal), h("p", { class: "bar" }, remove(r, note)));
}
