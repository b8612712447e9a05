// The screen of one view: its rows, its query, what it costs in a sentence, and why.

import { Data } from "./data.js";
import { card, el } from "./dom.js";
import { Why } from "./why.js";

/** Shows a view in a node; gives what ends it. */
export function viewScreen(node, view, width) {
  const data = new Data(view);
  const why = new Why(view, width);
  const title = el("h1", { tabindex: -1 }, view.name);
  node.replaceChildren(el("div", { class: "title" }, title), data.node, queryCard(view), why.node);
  return () => {
    data.stop();
    why.stop();
  };
}

function queryCard(view) {
  const text = view.query === null ? el("p", { class: "quiet" }, "This view was made from Python, not from a text.") : el("pre", { class: "query", tabindex: 0, "aria-label": "The query" }, view.query);
  return card("Query", { class: "of-view" }, text, view.cost ? el("p", { class: "cost" }, view.cost) : null);
}
