// The tree below the state as a table that opens and closes: one row per node, children indented.

import { chip, colour, element, meter, number, percent } from "./format.js";

export class Tree {
  constructor(place, detail, pointed) {
    this.place = place;
    this.detail = detail;
    this.pointed = pointed; // told the nodes from the root to the one pointed at
    this.open = new Set(); // paths of the opened nodes, as "1.0"
    this.focused = "";
  }

  show(moment, facts) {
    this.moment = moment;
    this.facts = facts;
    const held = this.place.contains(document.activeElement), scrolled = this.place.scrollTop;
    const root = element("tr", { role: "row" }, element("td", {}, "this state"), ...["", "", number(moment.plan.value), "", ""].map((text) => element("td", { class: "number" }, text)));
    root.children[3].id = "root-value";
    const rows = [root];
    this.add(rows, moment.tree, [], []);
    const top = ["Node", "r", "n", "V", "Q", "π"].map((text, index) => element("th", { class: index && index < 5 ? "number" : "" }, text));
    this.place.replaceChildren(element("table", { role: "treegrid", "aria-label": "Tree" }, element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows)));
    this.place.scrollTop = scrolled;
    if (held) this.row(this.focused)?.focus({ preventScroll: true });
  }

  add(rows, nodes, path, line) {
    nodes.forEach((node) => {
      const here = [...path, node.head], id = here.join("."), inside = node.children.length > 0;
      const opened = this.open.has(id), steps = [...line, node];
      rows.push(this.rowOf(node, here, id, inside, opened, steps));
      if (opened) this.add(rows, node.children, here, steps);
    });
  }

  rowOf(node, here, id, inside, opened, steps) {
    const depth = here.length, beyond = this.facts.planner_depth && depth > this.facts.planner_depth;
    const toggle = inside ? element("button", { class: "toggle", tabindex: -1, "aria-label": opened ? "close" : "open", onclick: () => this.toggle(id) }, opened ? "▾" : "▸") : element("span", { class: "step" });
    if (!inside) toggle.style.borderLeft = "0";
    const guides = here.slice(0, -1).map((head) => {
      const guide = element("span", { class: "step" });
      guide.style.borderColor = colour(head);
      return guide;
    });
    const row = element("tr", { role: "row", id: `node-${id.replaceAll(".", "-")}`, class: beyond ? "beyond" : "", "aria-level": depth, "aria-expanded": inside ? String(opened) : null, tabindex: id === this.focused || (!this.focused && id === "0") ? 0 : -1 },
      element("td", {}, ...guides, toggle, chip(node.head), steps.length === 1 && this.moment.chosen === node.head ? " ▶" : ""),
      ...[number(node.reward), number(node.duration, 1), number(node.value), number(node.q)].map((text) => element("td", { class: "number" }, text)),
      element("td", {}, meter(node.policy, 0, 1, colour(node.head)), ` ${percent(node.policy)}`));
    const point = () => { this.explain(node, here, beyond); this.pointed(steps); };
    row.addEventListener("mouseenter", point);
    row.addEventListener("focus", () => { this.focused = id; point(); });
    row.addEventListener("mouseleave", () => this.pointed(null));
    row.addEventListener("blur", () => this.pointed(null));
    row.addEventListener("keydown", (event) => this.key(event, id, inside, opened));
    return row;
  }

  explain(node, here, beyond) {
    const state = this.facts.options ? `γⁿ · chance to go on (${node.goes_on === null ? "–" : percent(node.goes_on)})` : "γ · chance to go on";
    const action = node.action.map((x) => number(x, 2)).join(", ");
    this.detail.textContent = `Head${here.length > 1 ? "s" : ""} ${here.join(" → ")}: action (${action}); Q = r + discount · V = ${number(node.reward)} + ${number(node.discount)} · ${number(node.value)} = ${number(node.q)}, discount = ${state}${beyond ? "; below the planner's depth: seen by the model, not counted" : ""}.`;
  }

  key(event, id, inside, opened) {
    const rows = [...this.place.querySelectorAll("tbody tr[id]")], at = rows.findIndex((row) => row === event.currentTarget);
    const parent = id.includes(".") ? id.slice(0, id.lastIndexOf(".")) : id;
    const actions = {
      ArrowDown: () => rows[at + 1]?.focus(),
      ArrowUp: () => rows[at - 1]?.focus(),
      ArrowRight: () => (inside && !opened ? this.toggle(id) : rows[at + 1]?.focus()),
      ArrowLeft: () => (opened ? this.toggle(id) : this.row(parent)?.focus()),
      Enter: () => inside && this.toggle(id),
    };
    if (!actions[event.key] || event.target !== event.currentTarget) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  row(id) { return this.place.querySelector(`#node-${id.replaceAll(".", "-")}`); }

  toggle(id) {
    if (!this.open.delete(id)) this.open.add(id);
    this.show(this.moment, this.facts);
  }

  openAll() {
    const visit = (nodes, path) => nodes.forEach((node) => {
      if (!node.children.length) return;
      const here = [...path, node.head];
      this.open.add(here.join("."));
      visit(node.children, here);
    });
    visit(this.moment.tree, []);
    this.show(this.moment, this.facts);
  }

  closeAll() {
    this.open.clear();
    this.show(this.moment, this.facts);
  }

  // Opens the line that the policy follows from node to node.
  openBest() {
    this.open.clear();
    let nodes = this.moment.tree, path = [];
    while (nodes.length) {
      const best = nodes.reduce((one, other) => (other.policy > one.policy ? other : one));
      path = [...path, best.head];
      if (best.children.length) this.open.add(path.join("."));
      nodes = best.children;
    }
    this.show(this.moment, this.facts);
  }
}
