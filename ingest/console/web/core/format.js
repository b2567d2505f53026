// Words and figures as the console writes them.

export const cut = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);
export const plural = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
// clock is the time of day of a date, in UTC.
export const clock = (date) => date.toISOString().slice(11, 19);

// ago says how long ago a time was: "3 min ago".
export function ago(text) {
  const s = Math.max(0, Math.round((Date.now() - Date.parse(text)) / 1000));
  if (s < 60) return s + " s ago";
  if (s < 3600) return Math.floor(s / 60) + " min ago";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min ago";
  return plural(Math.floor(s / 86400), "day") + " ago";
}

// duration writes one of Go's without the parts that are zero, whole days as days:
// "8760h0m0s" is "365 days".
export function duration(text) {
  const hours = /^(\d+)h0m0s$/.exec(text);
  return hours && hours[1] % 24 === 0 ? plural(hours[1] / 24, "day") : text.replace(/(\D)0s$/, "$1").replace(/(\D)0m$/, "$1");
}

export const json = (value) => JSON.stringify(value, null, 2);

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i ? n.toFixed(1) : n) + " " + units[i];
}
