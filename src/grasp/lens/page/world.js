// The world: a scene whose parts can be dragged, with each head's path, or the environment's own frame.

import { colour, dash, drawn, element, ink } from "./format.js";

const SIZE = 520, MARGIN = 26;
const across = (x) => MARGIN + x * (SIZE - 2 * MARGIN);
const upward = (y) => SIZE - MARGIN - y * (SIZE - 2 * MARGIN);

export class World {
  constructor(place, { moved, dropped }) {
    this.place = place;
    this.moved = moved;
    this.dropped = dropped;
    this.dragged = null;
    this.svg = drawn("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "World, seen from above" });
    this.layers = {};
    for (const name of ["ground", "paths", "objects", "agent", "labels", "hint"]) {
      this.layers[name] = drawn("g", { id: `layer-${name}` });
      this.svg.append(this.layers[name]);
    }
    this.layers.ground.append(drawn("rect", { x: across(0), y: upward(1), width: across(1) - across(0), height: upward(0) - upward(1), fill: "#fbfcfd", stroke: "#8a94a0", "stroke-width": 2, rx: 4 }));
    this.svg.addEventListener("pointermove", (event) => this.drag(event));
    this.svg.addEventListener("pointerup", (event) => this.drop(event));
    this.svg.addEventListener("pointercancel", (event) => this.drop(event));
  }

  show(moment) {
    if (moment.scene) {
      if (!this.dragged) this.scene = moment.scene; // else the hand knows better
      if (this.svg.parentNode !== this.place) this.place.replaceChildren(this.svg);
      this.drawPaths(moment);
      if (!this.dragged) this.drawScene();
    } else if (moment.frame) {
      const image = element("img", { alt: "The environment at this decision" });
      image.src = moment.frame;
      this.place.replaceChildren(image);
    } else {
      this.place.replaceChildren(element("p", { class: "quiet" }, `No picture of this world: ${moment.no_frame}.`));
    }
  }

  drawScene() {
    const { scene, layers } = this;
    const done = scene.left.filter((there) => !there).length;
    layers.objects.replaceChildren(...scene.objects.map((place, index) => this.object(place, index, done)));
    const dot = drawn("circle", { r: 11, fill: "#1a1f26", stroke: "#fff", "stroke-width": 2.5 });
    const agent = drawn("g", { id: "agent", class: "movable", tabindex: 0, role: "button", "aria-label": "Agent; drag it, or move it with the arrow keys" }, drawn("title", {}, "agent: drag me"), dot);
    moveTo(agent, scene.agent);
    this.grip(agent, { kind: "agent" });
    layers.agent.replaceChildren(agent);
  }

  object(place, index, done) {
    const there = this.scene.left[index], turn = this.scene.order.indexOf(index);
    const next = there && turn === done;
    const ink = there ? "#1a1f26" : "#b4bcc6";
    const name = "ABC"[index];
    const made = drawn("g", { id: `object-${name}` },
      drawn("title", {}, there ? `${name}: number ${turn + 1} of the order` : `${name}: done`),
      drawn("rect", { x: -17, y: -17, width: 34, height: 34, rx: 5, fill: next ? "#fff1c9" : "#fff", stroke: ink, "stroke-width": next ? 3 : 1.8, "stroke-dasharray": there ? "" : "4 4" }));
    const letter = drawn("text", { "text-anchor": "middle", y: 6 }, name);
    Object.assign(letter.style, { fontSize: "17px", fontWeight: 600, fill: ink });
    const inside = place[0] < 0.9 ? { x: 19, "text-anchor": "start" } : { x: -19, "text-anchor": "end" };
    const position = drawn("text", { ...inside, y: -10 }, there ? ["1st", "2nd", "3rd"][turn] : "done");
    made.append(letter, position);
    moveTo(made, place);
    if (this.scene.movable && there) {
      made.setAttribute("class", "movable");
      made.setAttribute("tabindex", 0);
      made.setAttribute("role", "button");
      made.setAttribute("aria-label", `Object ${name}; drag it, or move it with the arrow keys`);
      this.grip(made, { kind: "object", index });
    }
    return made;
  }

  drawPaths(moment) {
    const { paths, labels } = this.layers;
    paths.replaceChildren();
    labels.replaceChildren();
    if (!moment.paths || moment.over) return;
    const K = moment.paths.length;
    moment.paths.forEach((path, head) => {
      const chosen = head === moment.chosen, shift = 4 * (head - (K - 1) / 2);
      const points = path.map(([x, y]) => `${across(x) + shift},${upward(y) + shift}`).join(" ");
      paths.append(drawn("polyline", { id: `path-${head}`, points, fill: "none", stroke: colour(head), "stroke-width": chosen ? 5.5 : 2.5, "stroke-dasharray": chosen ? "" : dash(head), "stroke-linejoin": "round", opacity: chosen ? 1 : 0.85 }));
      const [x, y] = path[path.length - 1];
      const spread = (2 * Math.PI * head) / K + 0.6, away = chosen ? 22 : 20;
      const end = drawn("g", { id: `end-${head}`, transform: `translate(${across(x) + shift + away * Math.cos(spread)},${upward(y) + shift + away * Math.sin(spread)})`, "data-x": x, "data-y": y },
        drawn("title", {}, `head ${head} leads here`),
        drawn("circle", { r: 10, fill: colour(head), stroke: "#fff", "stroke-width": 1.5 }));
      const text = drawn("text", { "text-anchor": "middle", y: 4.5 }, String(head));
      Object.assign(text.style, { fill: ink(head), fontWeight: 700 });
      end.append(text);
      end.style.pointerEvents = "none";
      paths.append(drawn("circle", { cx: across(x) + shift, cy: upward(y) + shift, r: chosen ? 6 : 4.5, fill: colour(head) }));
      labels.append(end);
    });
  }

  // A line of aims from the agent on: what a node of the tree stands for.
  hint(steps) {
    const { hint } = this.layers;
    hint.replaceChildren();
    if (!steps || !this.scene || steps.some((step) => !step.aim)) return;
    let from = this.scene.agent;
    steps.forEach((step) => {
      hint.append(drawn("line", { x1: across(from[0]), y1: upward(from[1]), x2: across(step.aim[0]), y2: upward(step.aim[1]), stroke: "#000", "stroke-width": 1.6, "stroke-dasharray": "2 4" }),
        drawn("circle", { cx: across(step.aim[0]), cy: upward(step.aim[1]), r: 13, fill: "none", stroke: colour(step.head), "stroke-width": 3 }));
      from = step.aim;
    });
  }

  // Walks the agent's dot along the chosen path; resolves when it has arrived.
  walk(path, duration) {
    const dot = this.layers.agent.querySelector("#agent");
    if (!dot || duration < 30 || matchMedia("(prefers-reduced-motion: reduce)").matches) return Promise.resolve();
    const began = performance.now();
    return new Promise((done) => {
      const frame = (time) => {
        const share = Math.min((time - began) / duration, 1), along = share * (path.length - 1);
        const low = Math.floor(along), high = Math.min(low + 1, path.length - 1), rest = along - low;
        moveTo(dot, [0, 1].map((axis) => path[low][axis] * (1 - rest) + path[high][axis] * rest));
        if (share < 1) requestAnimationFrame(frame);
        else done();
      };
      requestAnimationFrame(frame);
    });
  }

  grip(node, what) {
    node.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      node.focus({ preventScroll: true });
      this.svg.setPointerCapture(event.pointerId);
      this.svg.classList.add("dragging");
      this.dragged = { ...what, node };
    });
    node.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const [x, y] = this.position(what);
      this.put(what, node, [x + 0.02 * step[0], y + 0.02 * step[1]]);
      this.dropped(this.layout(), node.id);
    });
  }

  drag(event) {
    if (!this.dragged) return;
    const box = this.svg.getBoundingClientRect(), scale = SIZE / box.width;
    const x = ((event.clientX - box.left) * scale - MARGIN) / (SIZE - 2 * MARGIN);
    const y = (SIZE - MARGIN - (event.clientY - box.top) * scale) / (SIZE - 2 * MARGIN);
    this.put(this.dragged, this.dragged.node, [x, y]);
    this.dragged.far = true;
    this.moved(this.layout());
  }

  drop() {
    if (!this.dragged) return;
    const { far, node } = this.dragged;
    this.dragged = null;
    this.svg.classList.remove("dragging");
    if (far) this.dropped(this.layout(), node.id);
  }

  put(what, node, place) {
    const inside = place.map((x) => Math.min(Math.max(x, 0), 1));
    const scene = structuredClone(this.scene);
    if (what.kind === "agent") scene.agent = inside;
    else scene.objects[what.index] = inside;
    this.scene = scene;
    moveTo(node, inside);
  }

  position(what) { return what.kind === "agent" ? this.scene.agent : this.scene.objects[what.index]; }

  layout() {
    const { agent, objects, left, order } = this.scene;
    return { agent, objects, left, order };
  }

  refocus(id) { this.svg.querySelector(`#${id}`)?.focus({ preventScroll: true }); }
}

function moveTo(node, [x, y]) { node.setAttribute("transform", `translate(${across(x)},${upward(y)})`); }
