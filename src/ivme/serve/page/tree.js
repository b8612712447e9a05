// A view's trees as SVG: what is stored, how large it is, and which parts are heavy or light.

import { el, setText, svg } from "./dom.js";
import { many } from "./format.js";
import { BOX, CHARACTER, ROW, gridded, placed, widthOf } from "./layout.js";

const LEGEND = [["stored", "stored view"], ["leaf", "stored rows of a table"], ["passed", "passed through"]];
const PARTS = [["heavy", "heavy values"], ["light", "light values"]];
const LEAST_SCALE = 0.8;
const ROLES = ["result", "view", "auxiliary", "leaf", "support", "heavy"];

/** Drawings of an explanation's trees; `show` writes the sizes of maps into them. One that is too wide is drawn a little
 * smaller, and then scrolled. */
export class Trees {
  constructor(explanation, width) {
    this.shown = new Map();
    const trees = rootsOf(explanation);
    const pictures = trees.map((tree, i) => this.picture(placed(tree), `tree ${i + 1} of ${trees.length}`));
    const drawn = new Set([...this.shown.values()].map((each) => each.map));
    const others = mapsOf(explanation).filter((node) => !drawn.has(node.map));
    if (others.length) pictures.push(this.picture(gridded(others, width), trees.length ? "maps beside the trees" : "the maps that are stored"));
    const split = explanation.maps.some((map) => map.name.includes("→"));
    const legend = [...LEGEND, ...(split ? PARTS : [])].map(([kind, text]) =>
      el("li", {}, el("span", { class: `swatch ${kind}` }), text),
    );
    this.total = el("p", { class: "quiet" });
    this.node = el("div", {}, el("div", { class: "forest" }, ...pictures), el("ul", { class: "legend" }, ...legend), this.total);
  }

  picture({ nodes, width, height }, name) {
    const edges = nodes.filter((each) => each.parent !== null).map(edge);
    const boxes = nodes.map((each) => this.box(each));
    const size = { width: Math.ceil(width + 4), height: Math.ceil(height + 4) };
    const picture = svg("svg", { ...size, viewBox: `-2 -2 ${size.width} ${size.height}`, role: "img", "aria-label": said(nodes, name) }, ...edges, ...boxes);
    picture.style.minWidth = `${Math.ceil(size.width * LEAST_SCALE)}px`;
    return el("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": name }, picture);
  }

  box({ node, x, depth }) {
    const width = widthOf(node);
    const left = x - width / 2;
    const top = depth * ROW;
    const size = svg("text", { class: "size", x, y: top + 49, "text-anchor": "middle" }, node.map === null ? "passed through" : "");
    const bar = svg("rect", { class: "bar", x: left + 8, y: top + BOX - 5, width: 0, height: 3, rx: 1.5 });
    if (node.map !== null) this.shown.set(node, { map: node.map, size, bar, width: width - 16 });
    return svg(
      "g",
      { class: `node ${kindOf(node)}` },
      svg("title", {}, `${node.name}${node.schema}`),
      svg("rect", { class: "frame", x: left, y: top, width, height: BOX, rx: 8 }),
      ...sides(node, left, top),
      svg("text", { class: "name", x, y: top + 19, "text-anchor": "middle" }, cut(node.name, width)),
      svg("text", { class: "schema", x, y: top + 34, "text-anchor": "middle" }, cut(node.schema, width)),
      size,
      bar,
    );
  }

  /** Writes what the sizes are bounded by, for a view that there is not. */
  expect(maps) {
    const bounds = new Map(maps.map((map) => [map.name, { 0: "up to 1", 1: "up to N" }[map.exponent] ?? `up to N^${map.exponent}`]));
    for (const { map, size } of this.shown.values()) setText(size, bounds.get(map) ?? "");
  }

  /** Writes sizes by the names of maps; bars are in proportion to their logarithms. */
  show(sizes) {
    const known = Object.values(sizes).filter((size) => size !== null);
    const most = Math.log(Math.max(2, ...known) + 1);
    for (const { map, size, bar, width } of this.shown.values()) {
      const entries = sizes[map] ?? null;
      setText(size, entries === null ? "not stored now" : many(entries, "key"));
      bar.setAttribute("width", ((Math.log((entries ?? 0) + 1) / most) * width).toFixed(1));
    }
    const sum = known.reduce((total, each) => total + each, 0);
    setText(this.total, `${many(sum, "key")} in ${many(known.length, "map")}.`);
  }
}

/** View trees have names and schemas; boxes of mark trees have both in their name. */
function rootsOf(explanation) {
  const marks = (box) => ({ ...named(box.name), kind: box.kind, map: box.map, children: box.children.map(marks) });
  const views = (node) => ({ ...node, schema: listed(node.schema), children: node.children.map(views) });
  return explanation.mark_trees.length ? explanation.mark_trees.map(marks) : explanation.view_trees.map(views);
}

function mapsOf(explanation) {
  const nodes = explanation.maps.map((map) => ({ name: map.name, kind: map.role, map: map.name, schema: listed(map.schema), children: [] }));
  return nodes.sort((one, other) => ROLES.indexOf(one.kind) - ROLES.indexOf(other.kind));
}

const listed = (schema) => `(${schema.join(", ")})`;

function named(label) {
  const start = label.indexOf("(");
  return { name: label.slice(0, start), schema: label.slice(start) };
}

function kindOf(node) {
  if (node.map === null) return "passed";
  if (node.kind === "heavy") return "keys";
  return ["atom", "indicator", "leaf", "support"].includes(node.kind) ? "leaf" : "stored";
}

/** A stripe for each side of an HL-signature, such as R[A→H, B→L]. */
function sides(node, left, top) {
  const found = [...node.name.matchAll(/→([HL])/g)].map((match) => (match[1] === "H" ? "heavy" : "light"));
  const height = (BOX - 12) / Math.max(1, found.length);
  return found.map((side, i) => svg("rect", { class: side, x: left, y: top + 6 + i * height, width: 5, height: height - 1.5, rx: 2 }));
}

function edge({ x, depth, parent }) {
  const [from, to] = [parent.depth * ROW + BOX, depth * ROW];
  const middle = (from + to) / 2;
  return svg("path", { class: "edge", d: `M${parent.x} ${from}C${parent.x} ${middle} ${x} ${middle} ${x} ${to}` });
}

function cut(text, width) {
  const most = Math.floor((width - 14) / CHARACTER);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function said(nodes, name) {
  const lines = nodes.map(({ node, parent }) => (parent === null ? "" : `under ${parent.node.name}: `) + node.name + node.schema);
  return `${name}. ${lines.join("; ")}`;
}
