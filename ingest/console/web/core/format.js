// Words and figures as the console writes them.

export const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
export const plural = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
export const json = (value) => JSON.stringify(value, null, 2);

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i ? n.toFixed(1) : n) + " " + units[i];
}
