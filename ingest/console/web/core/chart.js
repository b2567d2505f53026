// Charts over time, drawn by uPlot.

import uPlot from "../uplot-1.6.32/uPlot.esm.js";
import { h } from "./dom.js";

const seriesColours = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dayOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");

// Steps of an axis of counts or bytes: 1, 2, 5, 10 …
const wholeSteps = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power));

// drawMarks draws a line from top to bottom at each time.
function drawMarks(plot, marks, name, dash) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour(name);
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash);
  for (const t of marks) {
    const x = Math.round(plot.valToPos(t, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// rangeOf returns the range of an axis. It begins at zero for values that are not negative and vary
// much, and leaves room around a flat line.
function rangeOf(plot, least, most) {
  if (least === null || least === undefined) return [0, 1];
  if (least >= 0 && least <= most / 2) return [0, Math.max(most * 1.1, 1)];
  const room = Math.max((most - least) * 0.1, Math.abs(most) * 0.01, 0.01);
  return [least - room, most + room];
}

// alone shows values without a neighbour as points, since a line needs two.
const alone = (plot, i, visible) => {
  if (visible) return null;
  const values = plot.data[i],
    has = (n) => values[n] !== null && values[n] !== undefined;
  const found = [...values.keys()].filter((n) => has(n) && !has(n - 1) && !has(n + 1));
  return found.length ? found : null;
};

// chart draws series over time in UTC and returns the element to put on the page.
//   label   what the chart shows, for those who cannot see it
//   times   seconds since 1970, ascending
//   series  [{ label, values, band, line }], a value null where there is none; band: true
//           fills the area down to zero; line is the number of its colour, else its place
//   options { signal, height = 220 pixels, unit = "" of the values in the legend, format = (value) => text,
//           from, to: the range in seconds, else that of the times,
//           counts: true for axes in steps of whole numbers,
//           ranged: (from, to) => {}, after the reader selected a range,
//           between: [upper, lower], the indices of two series with a filled band between, which the legend
//           shows as one,
//           marks: times to mark with a red line, notes: with a dashed one }
// It follows the width of its place and the light or dark of the reader. When the
// signal ends, it is taken apart.
export function chart(
  label,
  times,
  series,
  { signal, height = 220, unit = "", format, from, to, counts, ranged, between, marks = [], notes = [] } = {}
) {
  const canvas = h("div", { class: "canvas" });
  const place = h("figure", { class: "chart", role: "img", "aria-label": label }, canvas);
  const text =
    format || ((v) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(Math.round(v * 100) / 100)));
  const colourOf = (i) => colour(seriesColours[((series[i].line || i + 1) - 1) % seriesColours.length]);
  let plot = null;
  const draw = () => {
    plot?.destroy();
    const [upper, lower] = between || [],
      bounds = (i) => i === upper || i === lower;
    const valueOf = (i, v, at) => {
      if (v === null || v === undefined) return "";
      return i === upper ? text(series[lower].values[at]) + " to " + text(v) + unit : text(v) + unit;
    };
    const lines = series.map((s, i) => ({
      label: s.label,
      class: i === upper ? "between" : i === lower ? "unlisted" : null,
      stroke: colourOf(bounds(i) ? 0 : i),
      width: bounds(i) ? 1 : 1.5,
      points: { filter: alone, fill: colour("--sheet") },
      fill: s.band ? colourOf(i) + "2b" : undefined,
      value: (_, v, __, at) => valueOf(i, v, at)
    }));
    const clock = (u, ticks) =>
      ticks.map((t, i) => {
        const at = new Date(t * 1000).toISOString(),
          day = at.slice(0, 10);
        const whole = ticks.length > 1 && ticks[1] - ticks[0] >= 86400;
        if (whole) return i === 0 ? at.slice(5, 10) + "\n" + at.slice(0, 4) : at.slice(5, 10);
        const begins = (n) => n === 0 || dayOf(ticks[n - 1]) !== dayOf(ticks[n]);
        const crowded = i === 0 && ticks.length > 1 && begins(1); // the next date would touch this one
        return at.slice(11, 16) + (begins(i) && !crowded ? "\n" + day : "");
      });
    const line = { stroke: colour("--line"), width: 1 },
      axis = { stroke: colour("--soft"), grid: line, ticks: line };
    const sizeOf = (_, values) => Math.max(56, 7.5 * Math.max(...(values || []).map((v) => v.length)) + 18);
    const selected = (u) => {
      if (ranged && u.select.width > 4)
        ranged(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
    };
    plot = new uPlot(
      {
        width: Math.max(canvas.clientWidth, 200),
        height,
        tzDate: utc,
        cursor: { y: false },
        scales: {
          x: { time: true, range: from === undefined ? undefined : () => [from, to] },
          y: { range: rangeOf }
        },
        axes: [
          { ...axis, values: clock },
          {
            ...axis,
            incrs: counts ? wholeSteps : undefined,
            size: sizeOf,
            values: (_, ticks) => ticks.map(text)
          }
        ],
        series: [
          {
            label: "UTC",
            value: (_, t) => (t ? new Date(t * 1000).toISOString().slice(0, 16).replace("T", " ") : "")
          },
          ...lines
        ],
        legend: { markers: { width: 0, fill: (_, i) => colourOf(bounds(i - 1) ? 0 : i - 1) } },
        bands: between ? [{ series: between.map((i) => i + 1), fill: colourOf(0) + "4d" }] : undefined,
        hooks: {
          setSelect: [selected],
          draw: [(u) => drawMarks(u, notes, "--soft", [4, 4]), (u) => drawMarks(u, marks, "--bad", [])]
        }
      },
      [times, ...series.map((s) => s.values)],
      canvas
    );
  };
  const watch = new ResizeObserver(() => {
    if (!canvas.clientWidth) return;
    plot ? plot.setSize({ width: canvas.clientWidth, height }) : draw();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => plot && draw();
  const end = () => {
    watch.disconnect();
    scheme.removeEventListener("change", repaint);
    plot?.destroy();
    plot = null;
  };
  watch.observe(canvas);
  scheme.addEventListener("change", repaint);
  signal?.addEventListener("abort", end);
  place.end = end; // for its replacement by a newer one
  return place;
}
