// The training view: curves of a run, finished or going on.

import { ask } from "./api.js";
import { lineChart, shareChart } from "./charts.js";
import { count, element } from "./format.js";

const BLUE = "#0072B2", ORANGE = "#D55E00";

export class Training {
  constructor(place, progress, failed) {
    this.place = place;
    this.progress = progress;
    this.failed = failed;
    this.seen = "";
    new ResizeObserver(() => this.redraw()).observe(place);
  }

  start() {
    this.update();
    this.timer ??= setInterval(() => this.update(), 2000);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }

  async update() {
    try {
      const data = await ask("api/training");
      this.tell(data);
      const mark = JSON.stringify([data.environment_steps, data.chosen.length]);
      if (mark !== this.seen) this.draw(data);
      this.seen = mark;
    } catch (problem) {
      this.failed(problem);
    }
  }

  tell(data) {
    if (data.age === null) {
      this.progress.textContent = "This run has logged nothing yet.";
      return;
    }
    if (data.card) {
      this.progress.textContent = `${data.card}.`;
      return;
    }
    const age = data.age < 90 ? `${Math.round(data.age)} s ago: the run goes on` : `${data.age < 5400 ? `${Math.round(data.age / 60)} min` : `${Math.round(data.age / 3600)} h`} ago: the run has stopped or finished`;
    this.progress.textContent = `${count(data.environment_steps)} of ${count(data.steps)} environment steps, ${count(data.decisions)} decisions; last row ${age}.`;
  }

  draw(data) {
    const { curves } = data, charts = [];
    const lines = (title, note, wanted, range) => {
      const series = wanted.filter(([key]) => curves[key]).map(([key, name, tint, dash]) => ({ name, points: curves[key], tint, dash }));
      if (series.length) charts.push(lineChart(title, note, series, range));
    };
    if (curves["eval/success"]) lines("Success", "share of episodes that reach the goal", [["eval/success", "greedy, evaluated", BLUE], ["rollout/success", "while learning", ORANGE, "6 3"]], [0, 1]);
    lines("Return", "per episode", [["eval/return", "greedy, evaluated", BLUE], ["rollout/return", "while learning", ORANGE, "6 3"]]);
    if (data.chosen.length) charts.push(shareChart("Heads in use", "share of states where a head has the highest Q", data.chosen));
    lines("Heads apart", "mean distance of two heads' proposals; 0: all the same", [["affordances/head_spread", "distance", BLUE]]);
    lines("Heads at their bounds", "share of proposed numbers beyond 0.95", [["affordances/saturated", "share", BLUE]], [0, 1]);
    lines("Q apart", "highest Q minus lowest, over the heads", [["planner/q_spread", "spread of Q", BLUE]]);
    lines("Entropy of the policy", "over the heads; 0: always sure", [["planner/entropy", "entropy", BLUE]]);
    lines("Value at the root", "what the planner expects", [["planner/value", "V", BLUE]]);
    lines("Losses of the model", "", [["train/value_loss", "value", BLUE], ["train/reward_loss", "reward", ORANGE, "6 3"]]);
    this.place.replaceChildren(...(charts.length ? charts : [element("p", {}, "Curves appear with the first logged row.")]));
    this.redraw();
  }

  redraw() {
    if (!this.place.clientWidth) return; // hidden: there is no width to draw to
    for (const figure of this.place.querySelectorAll("figure")) figure.draw();
  }
}
