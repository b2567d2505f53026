// Generating, claiming and annotating ledger tokens. Each is a job; the dialog waits for its end.

import { go } from "../core/address.js";
import { call } from "../core/api.js";
import { button, h } from "../core/dom.js";
import { copyButton, editIn, field, overlay } from "../core/form.js";
import { idOf, possible } from "../core/proof.js";
import { mayChange } from "../core/session.js";

// texts has the tokens that were generated in this page, by id.
const texts = new Map();

const refuse = (name, problem) => {
  throw Object.assign(new Error(problem), { brief: problem, fields: { [name]: [problem] } });
};

// objectOf reads a JSON object of an input; undefined for none.
function objectOf(name, text) {
  if (!text) return undefined;
  try {
    const value = JSON.parse(text);
    if (value && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // refused below
  }
  return refuse(name, 'Enter a JSON object, such as {"serial": "A-17"}.');
}

// finished waits for the end of a job and returns its details; a failed job is an error.
async function finished(jobId, as) {
  for (let tries = 0; tries < 60; tries++) {
    const { data } = await call("tokenJob", { path: { jobId }, as });
    if (data.status === "failed") throw new Error("The job failed: " + data.error);
    if (data.status === "completed") return data;
    await new Promise((resume) => setTimeout(resume, 500));
  }
  throw new Error("The job is not done yet. Jobs shows its state.");
}

// showToken shows a new token, which the list and the history name by its id only.
async function showToken(made, params) {
  const id = possible() ? await idOf(made.token) : "";
  if (id) texts.set(id, made.token);
  const line = (label, name, text) =>
    text && [
      h("p", null, label),
      h("pre", { tabindex: 0, id: name }, text),
      h("p", { class: "bar" }, copyButton(text))
    ];
  const dialog = overlay("Token generated", (close) => [
    h("p", null, "Copy it now. Ledgers store its SHA-256 only."),
    line("Token", "ledger-token", made.token),
    line("Private token", "private-token", made.private_token),
    line("Link", "token-link", made.link),
    id &&
      h(
        "p",
        { class: "bar" },
        button(
          "Show the history",
          () => {
            close();
            go("ledgers", { token: id, account: params.account });
          },
          { class: "main" }
        )
      )
  ]);
  return dialog;
}

// generateButton generates a token of the ledger of a page; done() follows.
export function generateButton(params, done) {
  if (!mayChange()) return "";
  const ask = () =>
    editIn(
      "Generate token",
      {
        go: "Generate",
        fields: [
          field("metadata", "Public metadata (JSON)", "area", "", { hint: 'Optional, such as {"serial": "A-17"}.' }),
          field("redirect_url", "Link target", "text", "", {
            hint: "Optional: an http or https URL.",
            wide: true
          })
        ],
        save: async (v) => {
          const body = { metadata: objectOf("metadata", v.metadata), redirect_url: v.redirect_url };
          const jobId = await call("generateToken", { path: { ledgerId: params.ledger }, body, as: params.account });
          return finished(jobId, params.account);
        }
      },
      (made) => {
        showToken(made, params);
        done();
      }
    );
  return button("Generate token", ask, { class: "main" });
}

// tokenButtons claim and annotate a token; done() follows. Both need the token's text.
export function tokenButtons(params, note, done) {
  if (!mayChange()) return "";
  const known = texts.get(params.token);
  const token = () =>
    field("token", "Token", "text", known, {
      required: true,
      wide: true,
      hint: "The text, which the ledger does not store."
    });
  const check = async (v) => {
    if (possible() && (await idOf(v.token)) !== params.token) refuse("token", "This is the text of another token.");
  };
  const said = (text) => () => {
    note.replaceChildren(h("p", { class: "said" }, text));
    done();
  };
  const claim = () =>
    editIn(
      "Claim token",
      {
        go: "Claim",
        fields: [
          token(),
          field("private_token", "Private token", "text", "", { hint: "Only if the ledger needs one.", wide: true })
        ],
        save: async (v) => {
          await check(v);
          const { jobid } = await call("claimToken", { body: v, as: params.account });
          const { claims } = await finished(jobid, params.account);
          if (!claims[0].claimed) throw new Error("Not claimed: " + claims[0].error);
        }
      },
      said("The token is claimed.")
    );
  const annotate = () =>
    editIn(
      "Add metadata",
      {
        go: "Add metadata",
        fields: [token(), field("metadata", "Public metadata (JSON)", "area", "", { required: true })],
        save: async (v) => {
          await check(v);
          const body = { token: v.token, metadata: objectOf("metadata", v.metadata) };
          await finished((await call("appendMetadata", { body, as: params.account })).jobid, params.account);
        }
      },
      said("The metadata is added.")
    );
  return h("p", { class: "bar" }, button("Claim", claim), button("Add metadata", annotate));
}
