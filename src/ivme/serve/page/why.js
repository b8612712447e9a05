// Why a view costs what it does: its class and bounds, what is stored, its parts and its trade-off. One click away.

import { ask, pathTo } from "./api.js";
import { card, el } from "./dom.js";
import { count } from "./format.js";
import { Parts } from "./parts.js";
import { every } from "./polling.js";
import { summary } from "./summary.js";
import { fraction, tradeoffPicture } from "./tradeoff.js";
import { Trees } from "./tree.js";

let isOpen = false;

/** A part that is read only when it is opened, and stays open for the next view. */
export class Why {
  constructor(view, width) {
    this.view = view;
    this.width = width;
    this.body = el("div", { class: "why-body" });
    this.node = el("details", { class: "card why", open: isOpen, toggle: () => this.toggle() }, el("summary", {}, "Why this cost"), this.body);
    this.stop = () => {};
    this.isShown = false;
    if (isOpen) this.toggle();
  }

  toggle() {
    isOpen = this.node.open;
    if (this.node.open === this.isShown) return;
    this.isShown = this.node.open;
    if (this.isShown) this.stop = this.start();
    else this.stop();
  }

  start() {
    let show = null;
    return every(2, async () => {
      try {
        const stats = await ask(pathTo(["views", this.view.name, "stats"]));
        show ??= this.build(await ask(pathTo(["views", this.view.name, "explain"])), stats);
        show(stats);
      } catch (error) {
        if (show === null) this.body.replaceChildren(el("p", { class: "wrong" }, error.message));
      }
    });
  }

  /** Makes the parts; gives what shows new figures in them. */
  build(explanation, stats) {
    const parts = new Parts();
    const trees = explanation.maps.length ? new Trees(explanation, this.width) : null;
    const kept = trees === null ? graph(stats) : card("What is stored", { class: "kept" }, trees.node);
    const curve = el("div", {});
    this.body.replaceChildren(
      summary(explanation),
      el("div", { class: "columns" }, el("div", { class: "column" }, kept, parts.node), el("div", { class: "column" }, tradeoffCard(explanation, curve))),
    );
    let shown = null;
    return (found) => {
      trees?.show(found.maps);
      parts.show(found);
      const epsilon = current(explanation, found);
      if (shown === null || shown.epsilon !== epsilon) drawCurve(curve, explanation, epsilon);
      shown = { epsilon };
    };
  }
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

/** What is stored for a closure, which has no maps. */
function graph(stats) {
  const names = ["nodes", "edges", "components", "pairs"].filter((name) => name in stats);
  const figures = names.map((name) => el("div", {}, el("dt", {}, name), el("dd", {}, el("b", {}, count(stats[name])))));
  return card("What is stored", { class: "kept" }, el("dl", { class: "bounds" }, ...figures));
}
