// Numbers, elements and the look of heads: the same everywhere on the page.

const DASHES = ["", "9 4", "3 3", "12 3 3 3", "6 6", "2 5", "14 5"];
const SVG = "http://www.w3.org/2000/svg";
let colours = ["#0072B2"];

export function useColours(given) { colours = given; }
export function colour(head) { return colours[head % colours.length]; }

// White or black, whichever reads better on a head's colour.
export function ink(head) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour(head).slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000" : "#fff";
}

export function dash(head) { return DASHES[head % DASHES.length]; }

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size >= 1e5 ? value.toExponential(1) : value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : digits);
  return text.replace(/^-(?=0\.?0*$)/, "").replace(/^-/, "−"); // no minus before a nought
}

export function percent(value) {
  return value > 0 && value < 0.005 ? "<1 %" : `${Math.round(100 * value)} %`;
}

export function signed(value) { return (value > 0 ? "+" : "") + number(value); }

export function count(value) { return Math.round(value).toLocaleString("en"); }

export function letters(order) { return order.map((index) => "ABC"[index]).join(" then "); }

export function element(kind, attributes = {}, ...children) {
  return filled(document.createElement(kind), attributes, children);
}

export function drawn(kind, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, kind), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function chip(head) {
  const made = element("span", { class: "chip" }, String(head));
  made.style.background = colour(head);
  made.style.color = ink(head);
  return made;
}

// A bar from `zero` to `value` on the scale low..high.
export function meter(value, low, high, tint, wide = false) {
  const zero = Math.min(Math.max(0, low), high), span = high - low || 1;
  const [from, to] = value < zero ? [value, zero] : [zero, value];
  const fill = element("i");
  fill.style.left = `${(100 * (from - low)) / span}%`;
  fill.style.width = `${Math.max((100 * (to - from)) / span, 1.5)}%`;
  fill.style.background = tint;
  return element("span", { class: wide ? "meter wide" : "meter" }, fill);
}
