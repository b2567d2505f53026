// First steps: leads an empty gateway to its first account, token, decoder, device and reading.

import { accounts, forget } from "../core/accounts.js";
import { go, link } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h, state, told, wrong } from "../core/dom.js";
import { during } from "../core/form.js";
import { section } from "../core/section.js";
import { frameCommand, snippet, webhookOf } from "../core/snippets.js";
import { addAccount, addToken, lastToken } from "./accounts.js";
import { addDecoder } from "./decoder.js";
import { addDevice } from "./devices.js";
import { addSensorType } from "./pickers.js";

// exampleDecoder creates a decoder that stores the value temperature of frames in JSON.
async function exampleDecoder(acct) {
  await addSensorType({ name: "Temperature", units: "°C" });
  const body = { name: "Temperature in JSON", description: "An example", type: "other", codec: "json" };
  const { data } = await call("createDecoder", { body, as: acct });
  const mapping = { key: "temperature", sensor_type_id: "temperature" };
  await call("addDecoderSensor", { path: { decoder_id: data.id }, body: mapping, as: acct });
}

// progressOf reads what exists: the account, its decoders and devices.
async function progressOf(params, signal) {
  forget();
  const known = await accounts(),
    chosen = known.find((a) => String(a.id) === params.account) || known[0];
  if (!chosen) return { known, tokens: [], decoders: [], devices: [] };
  const acct = String(chosen.id),
    query = { account: acct };
  const list = async (op, more) => (await call(op, { query: { ...query, ...more }, signal })).data;
  const [tokens, decoders, devices] = await Promise.all([
    list("listTokensOfAccounts"),
    list("listDecodersOfAccounts", { limit: 100 }),
    list("listDevicesOfAccounts", { limit: 100 })
  ]);
  return { known, chosen, acct, tokens, decoders, devices };
}

// isLocal reports whether the address of this page leads to this machine only.
const isLocal = () => /^(localhost|127\.|\[::1\])/.test(location.hostname);

const step = (title, done, ...content) =>
  h("li", null, h("b", null, title), " ", done && state("done"), h("div", null, content));

function steps(p, again, note) {
  const next = (text, act, primary) => button(text, act, { class: primary ? "main" : false });
  const example = (e) =>
    during(e.target, note, async () => {
      await exampleDecoder(p.acct);
      again();
      return "The decoder is created.";
    });
  const heard = p.devices.filter((d) => d.last_seen_at),
    device = p.devices[0],
    decoder = device ? device.decoder_id : (p.decoders[0] || {}).id;
  const token = lastToken() || "TOKEN";
  return h(
    "ol",
    { class: "steps sheet" },
    step(
      "Account",
      p.chosen,
      p.chosen
        ? link("accounts", { id: p.acct }, p.chosen.name)
        : [
            h("p", null, "An account owns devices, messages and credit."),
            next("Add account", () => addAccount((a) => go("start", { account: String(a.id) })), true)
          ]
    ),
    step(
      "Token",
      p.tokens.length > 0,
      p.chosen && [
        h("p", null, "Programs and network servers send it with each request."),
        next("Add API token", () => addToken(p.acct, again), p.tokens.length === 0)
      ]
    ),
    step(
      "Decoder",
      p.decoders.length > 0,
      p.tokens.length > 0 && [
        h("p", null, "It turns payloads into readings."),
        p.decoders.length === 0 && [
          next("Use an example", example, true),
          " ",
          next("Add decoder", () => addDecoder({ account: p.acct }))
        ]
      ]
    ),
    step(
      "Device",
      p.devices.length > 0,
      p.decoders.length > 0 && [
        p.devices.length === 0 && [
          h("p", null, "Add it here, or let its first frame create it."),
          next("Add device", () => addDevice({ account: p.acct, decoder: p.decoders[0].id }), true)
        ]
      ]
    ),
    step(
      "First reading",
      heard.length > 0,
      p.decoders.length > 0 && [
        h(
          "p",
          null,
          heard.length > 0 && [
            "All steps are done. Received from ",
            link("devices", { id: heard[0].id, account: p.acct }, heard[0].name || heard[0].identifier),
            ". "
          ],
          heard.length ? "To send another, " : "To send a reading, ",
          "run this command",
          isLocal() && " on this machine",
          ".",
          token === "TOKEN" &&
            " Replace TOKEN with a token of the account. Its text is shown only once; add a new one in step 2."
        ),
        snippet(
          frameCommand(token, device ? device.identifier : "my-device", decoder),
          "Command that sends a reading"
        ),
        h(
          "p",
          null,
          "For a LoRaWAN network server: post to this address with the header Authorization: Bearer TOKEN.",
          isLocal() && " Replace " + location.hostname + " with the name of this machine."
        ),
        snippet(webhookOf(decoder), "Address for network servers")
      ]
    )
  );
}

export function show(main, params, signal) {
  const note = told();
  const part = section(
    "",
    async () => {
      try {
        return steps(await progressOf(params, signal), () => part.again(), note);
      } catch (error) {
        if (error.name === "AbortError") throw error;
        return wrong(error);
      }
    },
    { signal, every: 3000 }
  );
  main.append(
    h("h1", null, "First steps"),
    h("p", { class: "intro" }, "From an empty gateway to the first reading."),
    note,
    part
  );
}
