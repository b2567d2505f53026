// Accounts by name: everything else in the console knows them by id.

import { call } from "./api.js";
import { h } from "./dom.js";

const retryAfter = 30_000;
let names = new Map(), asked = 0, loading = null;

// load asks for the names, at most each half minute. Without an answer, ids stay ids.
function load() {
  if (loading || Date.now() - asked < retryAfter) return loading || Promise.resolve();
  asked = Date.now();
  loading = call("listAccounts").then(({ data }) => { names = new Map(data.map((a) => [a.id, a.name])); }).catch(() => {}).finally(() => { loading = null; });
  return loading;
}

const text = (id) => (names.has(id) ? names.get(id) + " (" + id + ")" : String(id));

// account shows the account of an id as "name (id)"; nothing for none.
export function account(id) {
  if (!id) return "";
  const shown = h("span", { class: "account" }, text(id));
  if (!names.has(id)) load().then(() => { shown.textContent = text(id); });
  return shown;
}

// accounts returns all of them, [{ id, name }], by name.
export async function accounts() {
  if (names.size === 0) asked = 0;
  await load();
  return [...names].map(([id, name]) => ({ id, name })).sort((a, b) => a.name.localeCompare(b.name));
}
