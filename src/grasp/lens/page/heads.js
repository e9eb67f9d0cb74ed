// The K heads at this decision: what each proposes, its Q and probability, and the switches.

import { chip, colour, element, meter, number, percent } from "./format.js";

export function showHeads(place, facts, moment, rule, { force, off }) {
  const { q_values: q, policy, actions } = moment.plan;
  const low = Math.min(...q, 0), high = Math.max(...q, 0);
  const rows = q.map((_, head) => {
    const isOff = rule.off.includes(head), forced = rule.force === head, chosen = moment.chosen === head;
    const only = !isOff && rule.off.length === q.length - 1;
    return element("tr", { id: `head-${head}`, class: `${chosen ? "chosen" : ""} ${isOff ? "off" : ""}` },
      element("td", {}, chip(head), chosen ? " ▶" : ""),
      element("td", {}, proposal(facts, moment, head, actions[head])),
      element("td", { class: "number q" }, number(q[head])),
      element("td", { class: "only-wide" }, meter(q[head], low, high, colour(head))),
      element("td", { class: "number policy" }, percent(policy[head])),
      element("td", { class: "only-wide" }, meter(policy[head], 0, 1, colour(head))),
      element("td", {}, element("input", { type: "checkbox", checked: !isOff, disabled: only || q.length === 1, "aria-label": `head ${head} may be chosen`, title: only ? "at least one head stays on" : "may be chosen (Shift + number)", onchange: () => off(head) })),
      element("td", {}, element("button", { "aria-pressed": String(forced), title: `take head ${head} at every decision from here on (key ${head + 1})`, onclick: () => force(head) }, forced ? "Forced" : "Force")));
  });
  const top = element("tr", {}, ...["Head", facts.scenic ? "Proposes to go to" : "Proposes", "Q", "", "π", "", "On", ""].map((text, index) => element("th", { class: index === 2 || index === 4 ? "number" : index === 3 || index === 5 ? "only-wide" : "" }, text)));
  place.replaceChildren(element("table", {}, element("thead", {}, top), element("tbody", {}, ...rows)));
}

function proposal(facts, moment, head, action) {
  if (facts.scenic) {
    const taken = moment.picked?.[head];
    const what = facts.task === "collect" ? "takes" : "passes";
    const rest = action.length > 2 ? `, v (${action.slice(2).map((x) => number(x, 2)).join(", ")})` : "";
    const place = `(${action.slice(0, 2).map((x) => number(x, 2)).join(", ")})${rest}`;
    return element("span", {}, place, taken === null || taken === undefined ? "" : ` ${what} ${"ABC"[taken]}`);
  }
  return element("span", { class: "bars" }, ...action.map((x, index) => {
    const bar = meter(x, facts.low[index], facts.high[index], colour(head), action.length < 3);
    bar.title = `action ${index}: ${number(x)}`;
    bar.style.marginRight = "4px";
    if (action.length > 3) bar.style.width = "34px";
    return bar;
  }));
}
