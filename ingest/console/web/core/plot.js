// A plain plot of places: longitude to the right, latitude upwards. There is no map
// below it, since the console loads nothing from elsewhere.

import { byId, h } from "./dom.js";

const height = 320,
  left = 64,
  bottom = 34,
  top = 12,
  right = 14;

// svg makes an element of a drawing.
export function svg(tag, props, ...children) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props || {}))
    if (value !== undefined && value !== null) el.setAttribute(name, value);
  el.append(...children.flat().filter((c) => c !== undefined && c !== null));
  return el;
}

// ticks are four round numbers or more within a range.
function ticks(from, to) {
  const rough = (to - from) / 4,
    unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const out = [];
  for (let v = Math.ceil(from / step) * step; v <= to + step / 1e6; v += step) out.push([v, v.toFixed(digits)]);
  return out;
}

// range spans values with some room, at least a hundredth of a degree.
function range(values) {
  const least = Math.min(...values),
    most = Math.max(...values),
    room = Math.max((most - least) * 0.08, 0.005);
  return [least - room, most + room];
}

// places draws points [{ latitude, longitude, name, href, warn }]. In the middle of the plot, a
// degree of longitude has its true width relative to a degree of latitude.
export function places(points) {
  const width = Math.max(300, byId("main").clientWidth - 80); // texts keep their size
  let [west, east] = range(points.map((p) => p.longitude)),
    [south, north] = range(points.map((p) => p.latitude));
  const inWidth = width - left - right,
    inHeight = height - top - bottom;
  const squeeze = Math.max(Math.cos((((south + north) / 2) * Math.PI) / 180), 0.05);
  const scale = Math.min(inWidth / ((east - west) * squeeze), inHeight / (north - south));
  const wide = inWidth / scale / squeeze - (east - west),
    high = inHeight / scale - (north - south);
  west -= wide / 2;
  east += wide / 2;
  south -= high / 2;
  north += high / 2;
  const x = (v) => left + ((v - west) / (east - west)) * inWidth,
    y = (v) => top + ((north - v) / (north - south)) * inHeight;
  const label = (at, text, anchor) =>
    svg("text", { ...at, fill: "var(--soft)", "font-size": 12, "text-anchor": anchor }, text);
  const line = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2, stroke: "var(--line)" });
  const dot = (p) =>
    svg(
      "a",
      { href: p.href, "aria-label": p.name },
      svg("title", null, p.name),
      p.warn
        ? svg("path", {
            d: `M${x(p.longitude)} ${y(p.latitude) - 7}l6.5 12h-13z`,
            fill: "var(--bad)",
            stroke: "var(--sheet)"
          })
        : svg("circle", {
            cx: x(p.longitude),
            cy: y(p.latitude),
            r: 5.5,
            fill: "var(--line-1)",
            stroke: "var(--sheet)"
          }),
      (points.length <= 25 &&
        svg(
          "text",
          { x: x(p.longitude) + 9, y: y(p.latitude) + 4, "font-size": 12, fill: "var(--ink)" },
          p.name.split(" · ")[0]
        )) ||
        null
    );
  return h(
    "figure",
    { class: "chart sheet" },
    svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "group",
        width: "100%",
        "aria-label": points.length + " places by longitude and latitude"
      },
      ticks(west, east)
        .map(([v, text]) => [
          line(x(v), top, x(v), height - bottom),
          label({ x: x(v), y: height - bottom + 16 }, text, "middle")
        ])
        .flat(),
      ticks(south, north)
        .map(([v, text]) => [line(left, y(v), width - right, y(v)), label({ x: left - 6, y: y(v) + 4 }, text, "end")])
        .flat(),
      label({ x: width - right, y: height - 3 }, "longitude, degrees east", "end"),
      label({ x: 2, y: 11 }, "latitude", "start"),
      points.map(dot)
    )
  );
}
