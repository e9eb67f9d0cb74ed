// What this start returns: planning freely, under the rules of the page, and under every other rule.

import { element, meter, number, signed } from "./format.js";

export function ruleName(rule) {
  if (rule.force !== null && rule.force !== undefined) return `only head ${rule.force}`;
  return rule.off.length ? `without head${rule.off.length > 1 ? "s" : ""} ${rule.off.join(", ")}` : "planning over all heads";
}

export function rulesName(rules) {
  const real = rules.filter((rule, index) => index || rules.length === 1);
  return real.map((rule) => `${ruleName(rule)}${rule.since ? ` from decision ${rule.since} on` : ""}`).join(", then ");
}

// free, mine: {returned, success, decisions} or null while they are played; all: results or null.
export function showOutcome(place, { free, mine, rules, all, busy, problem }, compare) {
  const rows = [];
  const known = [free, mine, ...(all ?? [])].filter(Boolean).map((row) => row.returned);
  const low = Math.min(0, ...known), high = Math.max(0, ...known);
  const add = (name, result, kind) => rows.push(element("tr", { class: kind },
    element("td", {}, name),
    element("td", { class: "number returned" }, result ? number(result.returned) : "…"),
    element("td", { class: "only-wide" }, result ? meter(result.returned, low, high, "#5a6472") : ""),
    element("td", { class: "number" }, result && free && result !== free ? signed(result.returned - free.returned) : ""),
    element("td", {}, result?.success === true ? "success" : result?.success === false ? "no success" : ""),
    element("td", { class: "number" }, result ? String(result.decisions) : "")));
  add("planning over all heads", free, "free");
  if (rules) add(`yours: ${rulesName(rules)}`, mine, "mine");
  (all ?? []).slice(1).forEach((result) => add(ruleName(result.rule), result, "other"));
  const button = element("button", { id: "compare", disabled: busy, onclick: compare }, busy ? "Playing …" : "Compare every head alone and off");
  const top = ["Rule", "Return", "", "vs. planning", "", "Decisions"].map((text, index) => element("th", { class: index % 2 ? "number" : index === 2 ? "only-wide" : "" }, text));
  place.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...top)), element("tbody", {}, ...rows)), all ? "" : button, problem ? element("p", {}, problem) : "");
}
