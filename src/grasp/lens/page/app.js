// The page: one episode, given by its spec, shown at one decision; every view draws that moment.

import { ask, newest, post } from "./api.js";
import { element, letters, number, useColours } from "./format.js";
import { showHeads } from "./heads.js";
import { listen } from "./keys.js";
import { showOutcome } from "./outcome.js";
import { Strip } from "./strip.js";
import { Training } from "./training.js";
import { Tree } from "./tree.js";
import { World } from "./world.js";

const byId = (id) => document.getElementById(id);
const FREE = () => ({ since: 0, off: [], force: null });
const ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

const page = {
  facts: null,
  spec: { start: 0, order: null, scene: null, rules: [FREE()] },
  moment: null,
  wanted: 0, // the decision asked for last; the answer may still be on its way
  playing: false,
  outcome: { free: null, mine: null, all: null, busy: false },
};

const world = new World(byId("world"), { moved: newest(drag), dropped: arrange });
const tree = new Tree(byId("tree"), byId("node"), (steps) => world.hint(steps));
const strip = new Strip(byId("strip"), (at) => go(at));
const training = new Training(byId("charts"), byId("progress"), fail);

// ---- what the agent does

async function go(at, { passing = false, spec = page.spec } = {}) {
  try {
    page.wanted = at;
    const moment = await post("api/moment", { spec, at, passing });
    page.moment = moment;
    if (page.wanted === at) page.wanted = moment.index;
    show(moment);
    fine();
    return moment;
  } catch (problem) {
    pause();
    fail(problem);
    return null;
  }
}

async function begin(change) {
  pause();
  Object.assign(page.spec, change);
  page.outcome = { free: null, mine: null, all: null, busy: false };
  if (await go(0)) await outcomes();
}

async function ruled(change) {
  const at = page.moment.index;
  const rule = { ...ruleNow(), ...change, since: at };
  const rules = [...page.spec.rules.filter((entry) => entry.since < at), rule];
  page.spec.rules = rules.filter((entry, index) => !index || !same(entry, rules[index - 1]));
  page.outcome.mine = null;
  if (await go(at)) await outcomes();
}

function force(head) { return ruled({ force: ruleNow().force === head ? null : head }); }

function toggleOff(head) {
  const { off } = ruleNow();
  const rest = off.includes(head) ? off.filter((other) => other !== head) : [...off, head].sort();
  if (rest.length < page.facts.heads) ruled({ off: rest });
}

function ruleNow() { return page.spec.rules.findLast((entry) => entry.since <= page.moment.index); }
function same(one, other) { return one.force === other.force && String(one.off) === String(other.off); }
function free(spec) { return { ...spec, rules: [FREE()] }; }
function bound(spec) { return spec.rules.some((rule) => !same(rule, FREE())); }

// The returns of this start: planning freely, and under the page's rules.
const outcomes = newest(async () => {
  const { spec, outcome } = page;
  const played = async (asked) => {
    const end = await post("api/moment", { spec: asked, at: -1 });
    return { returned: end.returned, success: end.success, decisions: end.index };
  };
  try {
    drawOutcome();
    outcome.free ??= await played(free(spec));
    outcome.mine = bound(spec) ? await played(structuredClone(spec)) : null;
    if (outcome === page.outcome) drawOutcome();
  } catch (problem) {
    fail(problem);
  }
});

async function compare() {
  const { outcome } = page;
  outcome.busy = true;
  drawOutcome();
  try {
    outcome.all = (await post("api/compare", { spec: free(page.spec) })).results;
  } catch (problem) {
    fail(problem);
  }
  outcome.busy = false;
  if (outcome === page.outcome) drawOutcome();
}

// ---- the world in hand

let stamps = [];

async function drag(scene) {
  pause();
  const spec = { ...page.spec, scene, rules: [{ ...ruleNow(), since: 0 }] };
  await go(0, { passing: true, spec });
  const now = performance.now();
  stamps = [...stamps.filter((time) => now - time < 1000), now];
  byId("rate").textContent = `· live, ${stamps.length} updates/s`;
}

async function arrange(scene, id) {
  const rules = [{ ...ruleNow(), since: 0 }];
  byId("rate").textContent = "";
  await begin({ scene, order: null, rules });
  world.refocus(id);
}

function reorder(order) {
  const { scene } = page.moment, { rules } = { rules: [{ ...ruleNow(), since: 0 }] };
  if (page.moment.index === 0 && !page.spec.scene) return begin({ order, rules });
  const { agent, objects } = scene;
  return begin({ scene: { agent, objects, left: [true, true, true], order }, order: null, rules });
}

// ---- playing

async function play() {
  if (page.playing) return pause();
  if (page.moment.over) await go(0);
  page.playing = true;
  byId("play").textContent = "Pause";
  while (page.playing && page.moment && !page.moment.over) {
    const speed = Number(byId("speed").value), { moment } = page;
    const path = moment.paths?.[moment.chosen];
    if (path) await world.walk(path, Math.min(900, 250 + 12 * path.length) / speed);
    if (!page.playing || page.moment !== moment) break;
    await go(moment.index + (path ? 1 : speed));
    await new Promise((done) => setTimeout(done, path ? 250 / speed : 30));
  }
  pause();
}

function pause() {
  page.playing = false;
  byId("play").textContent = "Play";
}

function step(by) {
  pause();
  if (page.moment) go(Math.max((page.wanted < 0 ? page.moment.index : page.wanted) + by, 0));
}

// ---- drawing

function show(moment) {
  const { facts, spec } = page;
  world.show(moment);
  showHeads(byId("heads"), facts, moment, ruleNow(), { force, off: toggleOff });
  tree.show(moment, facts);
  strip.show(moment);
  byId("scrub").max = moment.heads.length;
  byId("scrub").value = moment.index;
  byId("start").value = spec.start;
  byId("undo-scene").hidden = !spec.scene;
  if (moment.scene) byId("order").value = moment.scene.order.join("");
  byId("goal").hidden = !facts.goal || facts.scenic;
  byId("goal").textContent = `goal (${moment.goal.map((x) => number(x, 2)).join(", ")}), which comes with the start`;
  const end = moment.success === true ? ": success" : moment.success === false ? ": no success" : "";
  const what = moment.over ? `over${end}` : `head ${moment.chosen} is chosen`;
  byId("now").textContent = `Decision ${moment.index}${moment.ended ? ` of ${moment.heads.length}` : ""} · return so far ${number(moment.returned)} · ${moment.steps} ${moment.steps === 1 ? "step" : "steps"} · ${what}`;
  byId("forward").disabled = moment.over;
  byId("back").disabled = byId("first").disabled = moment.index === 0;
}

function drawOutcome() {
  showOutcome(byId("outcome"), { ...page.outcome, rules: bound(page.spec) ? page.spec.rules : null }, compare);
}

function fail(problem) {
  byId("problem").textContent = problem.message;
  byId("problem").hidden = false;
}

function fine() { byId("problem").hidden = true; }

function tell(facts) {
  page.facts = facts;
  useColours(facts.colours);
  const what = facts.card ? "a released agent" : `${facts.which === "best" ? "best" : "last"} checkpoint`;
  byId("about").textContent = `${facts.agent} on ${facts.task} · ${facts.run} · ${what}`;
  byId("about").title = facts.card ?? "";
  byId("reload").hidden = facts.card !== null; // nothing newer will come
  document.title = `${facts.agent} on ${facts.task} · GrASP Lens`;
  byId("order-label").hidden = !facts.scenic;
  byId("heads-note").textContent = facts.scenic ? "each line in the world is where a head's option leads" : "";
  const note = facts.planner_depth
    ? `${facts.planner} looks ${facts.planner_depth} deep; grey rows lie deeper and do not count`
    : `${facts.planner} decides; this is the model's whole tree, weighed as a complete tree would`;
  byId("tree-note").textContent = facts.problem ? "" : note;
}

function open(name) {
  for (const view of ["episode", "training"]) {
    byId(view).hidden = view !== name || (view === "episode" && Boolean(page.facts?.problem));
    byId(`tab-${view}`).setAttribute("aria-selected", String(view === name));
  }
  if (name === "training") {
    pause();
    training.start();
  } else training.stop();
  if (page.facts?.problem) byId("problem").hidden = name === "training";
}

async function load(facts) {
  tell(facts);
  if (facts.problem) {
    fail(new Error(`No episode can be shown: ${facts.problem}.`));
    open("training");
    return;
  }
  open("episode");
  await begin({});
}

function wire() {
  byId("order").append(...ORDERS.map((order) => element("option", { value: order.join("") }, letters(order))));
  const clicks = {
    play, first: () => go(0), back: () => step(-1), forward: () => step(1), last: () => { pause(); go(-1); },
    "tree-best": () => tree.openBest(), "tree-all": () => tree.openAll(), "tree-none": () => tree.closeAll(),
    "undo-scene": () => begin({ scene: null, order: null }), "next-start": nextStart,
    "tab-episode": () => open("episode"), "tab-training": () => open("training"),
    "help-open": () => byId("help").showModal(),
    reload: async () => { pause(); try { await load(await post("api/reload", {})); } catch (problem) { fail(problem); } },
  };
  for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
  byId("start").addEventListener("change", (event) => newStart(Number(event.target.value)));
  byId("order").addEventListener("change", (event) => reorder([...event.target.value].map(Number)));
  byId("scrub").addEventListener("input", newest((event) => { pause(); return go(Number(event.target.value)); }));
  listen({ play, step, go, force, toggleOff, nextStart, open, pause, ready: () => page.moment && !byId("episode").hidden, heads: () => page.facts.heads });
}

function newStart(start) {
  if (!Number.isInteger(start) || start < 0) return fail(new Error("a start is a whole number from 0 on"));
  return begin({ start, scene: null, order: null, rules: [FREE()] });
}

function nextStart() { return newStart(page.spec.start + 1); }

wire();
ask("api/run").then(load, fail);
