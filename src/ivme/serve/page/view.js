// The screen of one view: its rows, its query, what it costs in a sentence, and why.

import { Data } from "./data.js";
import { card, el } from "./dom.js";
import { dropButton } from "./dropping.js";
import { Why } from "./why.js";

/** Shows a view in a node; gives what ends it. `write` puts a text into the editor, and `dropped` is called after a drop. */
export function viewScreen(node, view, width, { write, dropped }) {
  const data = new Data(view);
  const why = new Why(view, width);
  const title = el("h1", { tabindex: -1 }, view.name);
  const tools = el("div", { class: "actions" }, el("button", { type: "button", click: () => write(textOn(view)) }, "Query it"), dropButton(view, dropped));
  node.replaceChildren(el("div", { class: "title" }, title, tools), data.node, queryCard(view), why.node);
  return () => {
    data.stop();
    why.stop();
  };
}

function queryCard(view) {
  const text = view.query === null ? el("p", { class: "quiet" }, "This view was made from Python, not from a text.") : el("pre", { class: "query", tabindex: 0, "aria-label": "The query" }, view.query);
  return card("Query", { class: "of-view" }, text, view.cost ? el("p", { class: "cost" }, view.cost) : null);
}

/** A statement to begin with: one over the view, or its own text if it has parameters. */
function textOn(view) {
  if (Object.keys(view.parameters).length) return view.query ?? "";
  const name = /^[a-z_]\w*$/i.test(view.name) ? view.name : `"${view.name.replaceAll('"', '""')}"`;
  return `SELECT *\nFROM ${name}\nLIMIT 100`;
}
