// Accounts by name: records hold their ids.

import { call } from "./api.js";
import { h } from "./dom.js";

const retryAfter = 30_000;
let known = [],
  askedAt = 0,
  loading = null;

// load requests the accounts, at most each half minute. Without an answer, ids are shown.
function load() {
  if (loading || Date.now() - askedAt < retryAfter) return loading || Promise.resolve();
  askedAt = Date.now();
  loading = call("listAccounts")
    .then(({ data }) => {
      known = data;
    })
    .catch(() => {})
    .finally(() => {
      loading = null;
    });
  return loading;
}

const nameOf = (id) => known.find((a) => a.id === Number(id))?.name || String(id);

// accountName is the name of an account, or the id of one that is not loaded; "" without an id.
export const accountName = (id) => (id ? nameOf(id) : "");

// account shows the name of an account, with the id on hover; "" without an id.
export function account(id) {
  if (!id) return "";
  const shown = h("span", { class: "account", title: "Account " + id }, nameOf(id));
  if (!known.some((a) => a.id === Number(id)))
    load().then(() => {
      shown.textContent = nameOf(id);
    });
  return shown;
}

// accounts returns all accounts in the order of their names. After forget, the next call loads them again.
export async function accounts() {
  if (known.length === 0) askedAt = 0;
  await load();
  return [...known].sort((a, b) => a.name.localeCompare(b.name));
}

export function forget() {
  known = [];
  askedAt = 0;
}

// accountNames returns the accounts to pick from: [[id, name]].
export const accountNames = async () => (await accounts()).map((a) => [String(a.id), a.name]);
