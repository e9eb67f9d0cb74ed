// Line charts and stacked shares, drawn to the width they are given.

import { colour, drawn, element, ink, number } from "./format.js";

const HEIGHT = 210, LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 28;

// series: [{name, points: [[x, y]...], tint, dash}]; range fixes the vertical axis where given.
export function lineChart(title, note, series, range) {
  const figure = frame(title, note);
  figure.draw = () => {
    const width = figure.clientWidth - 26, all = series.flatMap((line) => line.points);
    const xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
    const [low, high] = range ?? spread(Math.min(...ys), Math.max(...ys));
    const axes = scales(width, Math.max(...xs), low, high);
    const svg = canvas(figure, width);
    grid(svg, axes, width, Math.max(...xs), low, high);
    series.forEach((line) => {
      svg.append(drawn("polyline", { points: line.points.map(([x, y]) => `${axes.x(x)},${axes.y(y)}`).join(" "), fill: "none", stroke: line.tint, "stroke-width": 2, "stroke-dasharray": line.dash ?? "", "stroke-linejoin": "round" }));
      if (line.points.length < 40) line.points.forEach(([x, y]) => svg.append(drawn("circle", { cx: axes.x(x), cy: axes.y(y), r: 2.6, fill: line.tint })));
    });
    readout(figure, svg, axes, (x) => series.map((line) => `${line.name} ${number(nearest(line.points, x)[1])}`).join(", "), series[0].points);
  };
  legend(figure, series.length > 1 ? series : []);
  return figure;
}

// points: [[x, share0, share1, ...]...]
export function shareChart(title, note, points) {
  const figure = frame(title, note), K = points[0].length - 1;
  figure.draw = () => {
    const width = figure.clientWidth - 26, most = points[points.length - 1][0];
    const axes = scales(width, most, 0, 1), svg = canvas(figure, width);
    for (let head = 0; head < K; head++) {
      const below = (row) => row.slice(1, head + 1).reduce((sum, share) => sum + share, 0);
      const total = (row) => row.slice(1).reduce((sum, share) => sum + share, 0) || 1;
      const upper = points.map((row) => `${axes.x(row[0])},${axes.y((below(row) + row[head + 1]) / total(row))}`);
      const lower = points.map((row) => `${axes.x(row[0])},${axes.y(below(row) / total(row))}`).reverse();
      svg.append(drawn("polygon", { points: [...upper, ...lower].join(" "), fill: colour(head), stroke: "#fff", "stroke-width": 1 }));
      const last = points[points.length - 1], middle = (below(last) + last[head + 1] / 2) / total(last);
      if (last[head + 1] > 0.06) {
        const label = drawn("text", { x: width - RIGHT - 8, y: axes.y(middle) + 4, "text-anchor": "end" }, `head ${head}`);
        label.style.fill = ink(head);
        label.style.fontWeight = 600;
        svg.append(label);
      }
    }
    grid(svg, axes, width, most, 0, 1);
    readout(figure, svg, axes, (x) => nearest(points, x).slice(1).map((share, head) => `head ${head} ${Math.round(100 * share)} %`).join(", "), points);
  };
  return figure;
}

function frame(title, note) {
  return element("figure", {}, element("figcaption", {}, title, " ", element("span", {}, note)), element("div", { class: "plot" }), element("div", { class: "quiet readout" }, " "));
}

function canvas(figure, width) {
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": figure.querySelector("figcaption").textContent });
  figure.querySelector(".plot").replaceChildren(svg);
  return svg;
}

function scales(width, most, low, high) {
  const right = width - RIGHT, bottom = HEIGHT - BOTTOM;
  return {
    x: (value) => LEFT + (value / (most || 1)) * (right - LEFT),
    y: (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - TOP),
    back: (pixel) => ((pixel - LEFT) / (right - LEFT)) * most,
  };
}

function grid(svg, axes, width, most, low, high) {
  ticks(low, high, 4).forEach((value) => {
    svg.prepend(drawn("line", { x1: LEFT, x2: width - RIGHT, y1: axes.y(value), y2: axes.y(value), stroke: "#e2e7ed" }));
    svg.append(drawn("text", { x: LEFT - 6, y: axes.y(value) + 4, "text-anchor": "end" }, short(value)));
  });
  ticks(0, most, Math.max(2, Math.floor(width / 110))).forEach((value) => svg.append(drawn("text", { x: axes.x(value), y: HEIGHT - 8, "text-anchor": "middle" }, short(value))));
}

function readout(figure, svg, axes, say, points) {
  const line = drawn("line", { y1: TOP, y2: HEIGHT - BOTTOM, stroke: "#1a1f26", "stroke-dasharray": "3 3", visibility: "hidden" });
  const words = figure.querySelector(".readout"), last = points[points.length - 1][0];
  const tell = (x) => { words.textContent = `at ${short(x)} steps: ${say(x)}`; };
  svg.append(line);
  svg.addEventListener("pointermove", (event) => {
    const pixel = event.offsetX * (svg.viewBox.baseVal.width / svg.clientWidth);
    const [x] = nearest(points, axes.back(pixel));
    line.setAttribute("x1", axes.x(x));
    line.setAttribute("x2", axes.x(x));
    line.setAttribute("visibility", "visible");
    tell(x);
  });
  svg.addEventListener("pointerleave", () => { line.setAttribute("visibility", "hidden"); tell(last); });
  tell(last);
}

function legend(figure, series) {
  const keys = series.map((line) => {
    const sample = drawn("svg", { width: 26, height: 10 }, drawn("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: line.tint, "stroke-width": 2.5, "stroke-dasharray": line.dash ?? "" }));
    sample.style.display = "inline-block";
    sample.style.width = "26px";
    return element("span", { class: "quiet" }, sample, ` ${line.name}  `);
  });
  figure.querySelector("figcaption").after(element("div", {}, ...keys));
}

function nearest(points, x) {
  return points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
}

function spread(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low >= 0 && low < high / 2 ? 0 : low - room, high + room];
}

function ticks(low, high, wanted) {
  const rough = (high - low || 1) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-6; index++) found.push(index * step);
  return found;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)}k`;
  return String(+value.toPrecision(3)).replace("-", "−");
}
