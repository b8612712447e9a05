// Tables, the views that read them, and who follows those: a graph from left to right, with rates.

import { ask } from "./api.js";
import { el, setText, svg } from "./dom.js";
import { many, short } from "./format.js";
import { tableHref, viewHref } from "./side.js";

const HIGH = 44;
const ROW = 56;
const SIZES = { wide: { WIDE: 190, GAP: 70, LETTERS: 22 }, narrow: { WIDE: 140, GAP: 26, LETTERS: 14 } };
const narrow = matchMedia("(max-width: 860px)");
let { WIDE, GAP, LETTERS } = SIZES.wide;

/** The drawing; `read` asks for what there is now, and says how much changed since the last time. */
export class Flow {
  constructor() {
    this.picture = el("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Graph of tables, views and subscribers" });
    this.node = el("div", {}, this.picture, el("p", { class: "quiet" }, "Changed rows per second, of tables and of views that have subscribers."));
    this.rates = new Map();
    this.last = null;
  }

  async read() {
    const found = await ask("stats?_maps=false").catch(() => null);
    if (found === null) return;
    const nodes = nodesOf(found);
    const key = JSON.stringify([narrow.matches, nodes.map(({ id, reads }) => [id, reads])]);
    if (this.key !== key) {
      this.key = key;
      ({ WIDE, GAP, LETTERS } = narrow.matches ? SIZES.narrow : SIZES.wide);
      this.draw(nodes);
    }
    const now = { at: performance.now(), totals: new Map(nodes.map(({ id, total }) => [id, total])) };
    for (const node of nodes) setText(this.rates.get(node.id), this.said(node, now));
    this.last = now;
  }

  said({ id, kind, total, size }, now) {
    if (kind === "subscribers") return size;
    if (total === null) return "no subscribers";
    const before = this.last?.totals.get(id) ?? null;
    const rate = before === null ? 0 : ((total - before) * 1000) / (now.at - this.last.at);
    const shown = short(Math.max(0, rate));
    if (kind === "table") return `${size}, ${shown}${narrow.matches ? "/s" : " changes/s"}`;
    return `${shown} changes/s`;
  }

  draw(nodes) {
    this.rates.clear();
    const places = placed(nodes);
    const columns = Math.max(0, ...places.values().map((each) => each.level)) + 1;
    const [width, height] = [columns * (WIDE + GAP) - GAP + 4, Math.max(1, ...places.values().map((each) => each.row + 1)) * ROW];
    const edges = nodes.flatMap((node) => node.reads.filter((id) => places.has(id)).map((id) => edge(places.get(id), places.get(node.id))));
    const picture = svg("svg", { width, height, viewBox: `-2 -2 ${width} ${height}`, class: "flow" }, ...edges, ...nodes.map((node) => this.box(node, places.get(node.id))));
    this.picture.replaceChildren(nodes.length ? picture : el("p", { class: "quiet" }, "There are no tables yet."));
  }

  box(node, { level, row }) {
    const [left, top] = [level * (WIDE + GAP), row * ROW];
    const rate = svg("text", { class: "rate", x: left + 12, y: top + 36 });
    this.rates.set(node.id, rate);
    const name = node.name.length > LETTERS ? `${node.name.slice(0, LETTERS - 1)}…` : node.name;
    const parts = [svg("rect", { class: "frame", x: left, y: top, width: WIDE, height: HIGH, rx: 8 }), svg("text", { class: "name", x: left + 12, y: top + 19 }, name), rate];
    return node.href ? svg("a", { class: `flow-node ${node.kind}`, href: node.href }, svg("title", {}, node.name), ...parts) : svg("g", { class: `flow-node ${node.kind}` }, ...parts);
  }
}

/** Tables, views and subscribers, with what each reads, and a total that grows with its changes. */
function nodesOf({ tables, views, followed }) {
  const known = new Set(tables.map((table) => table.name));
  const id = (name) => `${known.has(name) ? "table" : "view"} ${name}`;
  const subscribers = Object.entries(followed).filter(([, each]) => each.subscribers);
  return [
    ...tables.map(({ name, rows, changed_rows }) => ({ id: `table ${name}`, kind: "table", name, reads: [], total: changed_rows, size: `${short(rows)} rows`, href: tableHref(name) })),
    ...views.map(({ name, reads }) => ({ id: `view ${name}`, kind: "view", name, reads: [...new Set(reads.map(id))], total: followed[name]?.changed_rows ?? null, href: viewHref(name) })),
    ...subscribers.map(([name, each]) => ({ id: `of ${name}`, kind: "subscribers", name: "subscribers", reads: [`view ${name}`], total: null, size: many(each.subscribers, "subscriber"), href: null })),
  ];
}

/** A node is right of all that it reads; those of a column stand in the order of what they read. */
function placed(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const levels = new Map();
  const levelOf = (id) => {
    if (!levels.has(id)) {
      levels.set(id, 0);
      const least = byId.get(id).kind === "table" ? 0 : 1;
      levels.set(id, Math.max(least, ...byId.get(id).reads.filter((each) => byId.has(each)).map((each) => levelOf(each) + 1)));
    }
    return levels.get(id);
  };
  const last = Math.max(1, ...nodes.filter((node) => node.kind === "view").map((node) => levelOf(node.id)));
  const counts = new Map();
  return new Map(
    nodes.map((node) => {
      const level = node.kind === "subscribers" ? last + 1 : levelOf(node.id);
      const row = counts.get(level) ?? 0;
      counts.set(level, row + 1);
      return [node.id, { level, row }];
    }),
  );
}

function edge(from, to) {
  const [x1, y1] = [from.level * (WIDE + GAP) + WIDE, from.row * ROW + HIGH / 2];
  const [x2, y2] = [to.level * (WIDE + GAP), to.row * ROW + HIGH / 2];
  const middle = (x1 + x2) / 2;
  return svg("path", { class: "edge", d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` });
}
