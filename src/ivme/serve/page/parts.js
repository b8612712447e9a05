// Heavy and light: where the line is for each key, and how the rows of each table are divided by it.

import { card, el } from "./dom.js";
import { count, many, time } from "./format.js";

/** A card that `show` fills from a view's figures; it is hidden while the view has no parts. */
export class Parts {
  constructor() {
    this.body = el("div", {});
    this.node = card("Heavy and light", { class: "parts" }, this.body);
    this.node.hidden = true;
  }

  show(stats) {
    this.node.hidden = !stats.partitions;
    if (this.node.hidden) return;
    const heavyFirst = stats.parts.toSorted((one, other) => heaviness(other) - heaviness(one));
    const tables = Map.groupBy(heavyFirst, (part) => part.relation);
    this.body.replaceChildren(
      ...[...tables].map(([relation, parts]) => divided(relation, parts)),
      thresholds(stats.partitions),
      el("p", { class: "quiet" }, rebalanced(stats)),
    );
  }
}

function divided(relation, parts) {
  const total = parts.reduce((sum, part) => sum + (part.rows ?? 0), 0);
  const named = parts.map((part) => ({ ...part, name: part.sides.map((side) => `${side.key.join("")}→${side.heavy ? "H" : "L"}`).join(", ") }));
  const segments = named
    .filter((part) => part.rows)
    .map((part) => {
      const segment = el("span", { class: `segment ${kind(part.sides)}`, title: `${part.name}: ${many(part.rows, "row")}` });
      segment.style.flexGrow = String(part.rows / total);
      return segment;
    });
  const listed = named.map((part) => el("li", {}, el("span", { class: `swatch ${kind(part.sides)}` }), `${part.name || "all"} ${count(part.rows ?? 0)}`));
  return el(
    "div",
    { class: "divided" },
    el("p", {}, el("b", {}, relation), ` ${many(total, "row")}`),
    el("div", { class: "segments", "aria-hidden": "true" }, ...segments),
    el("ul", { class: "legend" }, ...listed),
  );
}

const heaviness = (part) => part.sides.filter((side) => side.heavy).length;

function kind(sides) {
  const heavy = sides.filter((side) => side.heavy).length;
  return heavy === 0 ? "light" : heavy === sides.length ? "heavy" : "mixed";
}

function thresholds(partitions) {
  const rows = Object.entries(partitions).map(([key, side]) =>
    el("tr", {}, el("th", { scope: "row" }, key), number(side.epsilon), number(side.threshold), number(side.heavy)),
  );
  const head = ["key", "ε", "heavy from degree", "heavy values"].map((name) => el("th", { scope: "col" }, name));
  return el("table", { class: "figures" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

const number = (value) => el("td", {}, count(value));

function rebalanced({ n, base, rebalancings, rebalancing_seconds: seconds }) {
  const [major, minor] = [many(rebalancings.major, "major rebalancing"), many(rebalancings.minor, "minor one")];
  return `N is ${count(n)}, M is ${count(base)}. So far ${major} (${time(seconds.major)}) and ${minor} (${time(seconds.minor)}), with ${many(rebalancings.keys_moved, "key")} moved.`;
}
