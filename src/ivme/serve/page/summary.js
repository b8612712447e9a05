// What is guaranteed: the class of a view, its strategy, its bounds, and the lower bound of any algorithm.

import { el } from "./dom.js";
import { raised } from "./power.js";

const BOUNDS = [
  ["update", "Update", "for a changed row"],
  ["delay", "Delay", "between rows that are read"],
  ["space", "Space", "keys that are stored"],
  ["preprocessing", "Build", "when the view is made"],
];

/** The guarantee of an explanation. */
export function summary(explanation) {
  return el(
    "div",
    { class: "summary" },
    el("p", { class: "chips" }, chip("class", explanation.query_class), chip("strategy", explanation.strategy ?? "none")),
    el("code", { class: "query" }, explanation.query),
    el("dl", { class: "bounds" }, ...BOUNDS.map((names) => bound(explanation, names))),
    el("p", { class: "quiet" }, ...raised(explanation.reason === "requested" ? "This strategy was requested." : sentence(explanation.reason))),
    explanation.lower_bound === null ? null : lowerBound(explanation.lower_bound),
    explanation.notes.length === 0 ? null : notes(explanation.notes),
  );
}

function chip(kind, text) {
  return el("span", { class: `chip ${kind}` }, el("span", { class: "chip-name" }, kind), " ", text);
}

function bound(explanation, [field, name, meaning]) {
  const found = explanation[field];
  const text = found === null ? "not known" : found.text.replace(" amortised", "");
  const details = [meaning];
  if (found?.amortised) details.unshift("amortised");
  if (found !== null && found.value !== null && found.exponent !== found.value) details.unshift(`N^${found.value} here`);
  return el("div", {}, el("dt", {}, name), el("dd", {}, el("b", {}, ...raised(text)), el("small", {}, ...raised(details.join(", ")))));
}

function lowerBound(found) {
  return el("p", { class: "lower" }, el("strong", {}, "Lower bound: "), ...raised(`${sentence(found.text)} `), el("small", {}, `Source ${found.source}; ${found.pattern}.`));
}

function notes(texts) {
  return el("details", {}, el("summary", {}, texts.length === 1 ? "One note" : `${texts.length} notes`), el("ul", {}, ...texts.map((text) => el("li", {}, ...raised(sentence(text))))));
}

function sentence(text) {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
