// Charts over time, drawn by uPlot.

import uPlot from "../uplot-1.6.32/uPlot.esm.js";
import { h } from "./dom.js";

const seriesColours = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dayOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");

// Steps of an axis: 1, 2, 5, 10 … of counts, powers of two of bytes.
const wholeSteps = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));
const byteSteps = [...Array(50).keys()].map((power) => 2 ** power);

// rangeOf shows values that are never negative from zero, and gives a flat line room.
function rangeOf(plot, least, most) {
  if (least === null || least === undefined) return [0, 1];
  if (least >= 0 && least <= most / 2) return [0, Math.max(most * 1.1, 1)];
  const room = Math.max((most - least) * 0.1, Math.abs(most) * 0.01, 0.01);
  return [least - room, most + room];
}

// alone shows values without a neighbour as points, since a line needs two.
const alone = (plot, i, show) => {
  if (show) return null;
  const values = plot.data[i], there = (at) => values[at] !== null && values[at] !== undefined;
  const found = [...values.keys()].filter((at) => there(at) && !there(at - 1) && !there(at + 1));
  return found.length ? found : null;
};

// chart draws series over time in UTC and returns the element to put on the page.
//   label   what the chart shows, for those who cannot see it
//   times   seconds since 1970, ascending
//   series  [{ label, values, band }], a value null where there is none; band: true
//           fills the area down to zero
//   options { signal, height = 220 pixels, unit = "", format = (value) => text,
//           from, to: the range in seconds, else that of the times,
//           counts: true for axes in steps of whole numbers, bytes: true in those of bytes,
//           ranged: (from, to) => {}, after the reader selected a range }
// It follows the width of its place and the light or dark of the reader. When the
// signal ends, it is taken apart.
export function chart(label, times, series, { signal, height = 220, unit = "", format, from, to, counts, bytes, ranged } = {}) {
  const canvas = h("div", { class: "canvas" });
  const place = h("figure", { class: "chart", role: "img", "aria-label": label }, canvas);
  const text = format || ((v) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(Math.round(v * 100) / 100)));
  let plot = null;
  const draw = () => {
    plot?.destroy();
    const lines = series.map((s, i) => ({
      label: s.label, stroke: colour(seriesColours[i % seriesColours.length]), width: 1.5, points: { filter: alone },
      fill: s.band ? colour(seriesColours[i % seriesColours.length]) + "2b" : undefined, value: (_, v) => (v === null || v === undefined ? "–" : text(v) + unit),
    }));
    const clock = (u, ticks) => ticks.map((t, i) => {
      const at = new Date(t * 1000).toISOString(), day = at.slice(0, 10);
      if (ticks.length > 1 && ticks[1] - ticks[0] >= 86400) return i === 0 ? at.slice(5, 10) + "\n" + at.slice(0, 4) : at.slice(5, 10);
      const begins = (n) => n === 0 || dayOf(ticks[n - 1]) !== dayOf(ticks[n]);
      const crowded = i === 0 && ticks.length > 1 && begins(1); // the next date would touch this one
      return at.slice(11, 16) + (begins(i) && !crowded ? "\n" + day : "");
    });
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    plot = new uPlot({
      width: Math.max(canvas.clientWidth, 200), height, tzDate: utc, cursor: { y: false },
      scales: { x: { time: true, range: from === undefined ? undefined : () => [from, to] }, y: { range: rangeOf } },
      axes: [{ ...axis, values: clock }, { ...axis, incrs: bytes ? byteSteps : counts ? wholeSteps : undefined, size: (_, values) => Math.max(64, 7 * Math.max(...(values || []).map((v) => v.length)) + 18), values: (_, ticks) => ticks.map((v) => text(v) + unit) }],
      series: [{ label: "UTC", value: (_, t) => (t ? new Date(t * 1000).toISOString().slice(0, 16).replace("T", " ") : "–") }, ...lines],
      hooks: { setSelect: [(u) => ranged && u.select.width > 4 && ranged(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"))] },
    }, [times, ...series.map((s) => s.values)], canvas);
  };
  const watch = new ResizeObserver(() => {
    if (!canvas.clientWidth) return;
    plot ? plot.setSize({ width: canvas.clientWidth, height }) : draw();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => plot && draw();
  const end = () => { watch.disconnect(); scheme.removeEventListener("change", repaint); plot?.destroy(); plot = null; };
  watch.observe(canvas);
  scheme.addEventListener("change", repaint);
  signal?.addEventListener("abort", end);
  place.end = end; // for who replaces it by a newer one
  return place;
}
