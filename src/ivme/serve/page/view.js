// The screen of one view: its guarantee, its trees with sizes, its parts, an access request, and the trade-off.

import { ask, pathTo } from "./api.js";
import { Asking } from "./ask.js";
import { card, el } from "./dom.js";
import { count } from "./format.js";
import { Parts } from "./parts.js";
import { every } from "./polling.js";
import { summary } from "./summary.js";
import { fraction, tradeoffPicture } from "./tradeoff.js";
import { Trees } from "./tree.js";

/** Shows a view in a node; gives what ends it. */
export async function viewScreen(node, view, width) {
  const [explanation, stats] = await Promise.all([ask(pathTo(["views", view.name, "explain"])), ask(pathTo(["views", view.name, "stats"]))]);
  const asking = new Asking(view);
  const parts = new Parts();
  const trees = explanation.maps.length ? new Trees(explanation, width) : null;
  const kept = trees === null ? graph(stats) : card("What is kept", { class: "kept" }, trees.node);
  const curve = el("div", {});
  const title = el("h1", { tabindex: -1 }, view.name);
  node.replaceChildren(
    el("div", { class: "card head" }, title, summary(explanation)),
    el(
      "div",
      { class: "columns" },
      el("div", { class: "column" }, kept, parts.node),
      el("div", { class: "column" }, asking.node, tradeoffCard(explanation, curve)),
    ),
  );
  let shown = {};
  function show(found) {
    trees?.show(found.maps);
    parts.show(found);
    const epsilon = current(explanation, found);
    if (shown.epsilon !== epsilon) drawCurve(curve, explanation, epsilon);
    shown = { epsilon };
  }
  show(stats);
  const stop = every(2, async () => {
    const found = await ask(pathTo(["views", view.name, "stats"])).catch(() => null);
    if (found !== null) show(found);
  });
  return () => {
    stop();
    asking.stop();
  };
}

function tradeoffCard(explanation, curve) {
  const fixed = "The bounds of this view are the same for every ε: there is nothing to trade.";
  return card("Updates against reads", { class: "trade" }, explanation.tradeoff === null ? el("p", { class: "quiet" }, fixed) : curve);
}

function drawCurve(curve, explanation, epsilon) {
  const picture = tradeoffPicture(explanation, epsilon);
  if (picture !== null) curve.replaceChildren(picture);
}

/** The ε of now, if all parts have the same; else the one that the bounds are given for. */
function current(explanation, stats) {
  const now = new Set(Object.values(stats.partitions ?? {}).map((side) => side.epsilon));
  if (now.size === 1) return [...now][0];
  return typeof explanation.epsilon === "string" ? fraction(explanation.epsilon) : null;
}

/** What is kept for a closure, which has no maps. */
function graph(stats) {
  const names = ["nodes", "edges", "components", "pairs"].filter((name) => name in stats);
  const figures = names.map((name) => el("div", {}, el("dt", {}, name), el("dd", {}, el("b", {}, count(stats[name])))));
  return card("What is kept", { class: "kept" }, el("dl", { class: "bounds" }, ...figures));
}
