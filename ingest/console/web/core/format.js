// Words and figures as the console writes them.

export const cut = (text, limit) => (text.length > limit ? text.slice(0, limit) + "…" : text);
export const plural = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");
export const capital = (text) =>
  text === "ok" ? "OK" : text.charAt(0).toUpperCase() + text.slice(1);
// clock is the time of day of a date, in UTC.
export const clock = (date) => date.toISOString().slice(11, 19) + " UTC";
// iso is a time in milliseconds as RFC 3339, without fractions of a second.
export const iso = (ms) => new Date(ms).toISOString().slice(0, 19) + "Z";
export const exact = (text) => text.replace("T", " ").replace(/(\.\d+)?Z$/, "");

// eventOf returns the event of a record or a message: those of an event with several have a number after its id.
export const eventOf = (id) => id.replace(/\.\d+$/, "");

// span writes a number of seconds: "4 min", "3 h", "2 days".
export function span(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400)
    return (
      Math.floor(s / 3600) + " h" + (s < 36000 && s % 3600 >= 60 ? " " + Math.floor((s % 3600) / 60) + " min" : "")
    );
  return plural(Math.floor(s / 86400), "day");
}

// took writes a number of milliseconds that something took: "35 ms", "1.2 s".
export const took = (ms) => (ms >= 1000 ? Math.round(ms / 100) / 10 + " s" : Math.round(ms) + " ms");

// instant parses a time to milliseconds. A time without a zone, as the interfaces of accounts write it, is in UTC.
export const instant = (text) => Date.parse(text.includes("T") ? text : text.replace(" ", "T") + "Z");

// ago says how far from now a time is: "3 min ago", "in 2 h".
export function ago(text) {
  const seconds = (Date.now() - instant(text)) / 1000;
  return seconds < -1 ? "in " + span(-seconds) : span(Math.max(0, seconds)) + " ago";
}

// lasted says how long something took that began at one time and ended at another, or goes on.
export const lasted = (from, to) => span(Math.max(0, ((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1000));

// duration formats a Go duration without the parts that are zero, and whole days as days:
// "8760h0m0s" is "365 days".
export function duration(text) {
  const hours = /^(\d+)h0m0s$/.exec(text);
  if (hours && hours[1] % 24 === 0) return plural(hours[1] / 24, "day");
  return text.replace(/(\D)0s$/, "$1").replace(/(\D)0m$/, "$1");
}

// stateWord is the word for a state of the API: "dead" deliveries are "failed" in the console.
export const stateWord = (word) => (word === "dead" ? "failed" : word);

// newestFirst returns records sorted by their time, the newest first.
export const newestFirst = (records) => [...records].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));

export const json = (value) => JSON.stringify(value, null, 2);

// number rounds to three decimals; "" for null.
export const number = (v) => (v === null || v === undefined ? "" : String(Math.round(v * 1000) / 1000));

// signed writes a whole number with a minus sign and thousands: "−1,200". grouped has the plus sign too.
export const signed = (n) => n.toLocaleString("en").replace("-", "−");

// bytes writes a size in decimal units, as operators sell data.
export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return (i ? String(Math.round(n * 10) / 10) : n) + " " + units[i];
}
