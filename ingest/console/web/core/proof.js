// Inclusion proofs of Merkle trees (RFC 6962), computed in the reader's browser.

const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
export const encode = (bytes) => btoa(String.fromCharCode(...bytes));
const sha256 = async (...parts) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer()));

// possible reports whether this page can compute: browsers offer it over TLS and on
// the own machine only.
export const possible = () => Boolean(globalThis.crypto?.subtle);

// idOf is the id of a token: the SHA-256 of its text, in hex.
export const idOf = async (text) => [...(await sha256(text))].map((b) => b.toString(16).padStart(2, "0")).join("");

export const leafHash = (text) => sha256(new Uint8Array([0]), text);

// sidesOf says for each hash of a proof on which side it stands, from the leaf to the
// root (RFC 9162, 2.1.3.2).
export function sidesOf(sequence, size, steps) {
  const sides = [];
  let at = sequence,
    last = size - 1;
  while (sides.length < steps) {
    if (at % 2 === 1 || at === last) {
      sides.push("left");
      while (at % 2 === 0 && at !== 0) {
        at = Math.floor(at / 2);
        last = Math.floor(last / 2);
      }
    } else sides.push("right");
    at = Math.floor(at / 2);
    last = Math.floor(last / 2);
  }
  return sides;
}

// climb computes the hashes from an entry's leaf to the root: [{ side, other, hash }],
// the leaf first.
export async function climb(leaf, sequence, size, proof) {
  let hash = await leafHash(leaf);
  const steps = [{ hash: encode(hash) }],
    sides = sidesOf(sequence, size, proof.length);
  for (const [i, other] of proof.entries()) {
    const node = new Uint8Array([1]);
    hash = sides[i] === "left" ? await sha256(node, decode(other), hash) : await sha256(node, hash, decode(other));
    steps.push({ side: sides[i], other, hash: encode(hash) });
  }
  return steps;
}

// rootOf is the root of the tree of some leaf hashes in base64, at least one.
export async function rootOf(leaves) {
  if (leaves.length === 1) return leaves[0];
  let left = 1;
  while (left * 2 < leaves.length) left *= 2;
  return encode(
    await sha256(
      new Uint8Array([1]),
      decode(await rootOf(leaves.slice(0, left))),
      decode(await rootOf(leaves.slice(left)))
    )
  );
}

// signedBy reports whether a note is signed by a key of Ed25519 (C2SP signed-note);
// null where the browser has no Ed25519.
export async function signedBy(note, key) {
  const [name, , ...coded] = key.split("+"),
    split = note.lastIndexOf("\n\n");
  const text = new TextEncoder().encode(note.slice(0, split + 1)),
    prefix = "— " + name + " ";
  const line = note
    .slice(split + 2)
    .split("\n")
    .find((l) => l.startsWith(prefix));
  if (!line) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", decode(coded.join("+")).slice(1), "Ed25519", false, [
      "verify"
    ]);
    return await crypto.subtle.verify("Ed25519", imported, decode(line.slice(prefix.length)).slice(4), text);
  } catch (error) {
    if (error.name === "NotSupportedError") return null;
    throw error;
  }
}
