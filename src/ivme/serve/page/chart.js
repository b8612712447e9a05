// A simple chart of rows: one column over another, as bars or as a line.

import { el, svg } from "./dom.js";
import { count, short } from "./format.js";
import { compare, shownValue } from "./values.js";

const WIDEST = 640;
const NARROWEST = 280;
const HEIGHT = 240;
const LEFT = 52;
const BOTTOM = 30;
const TOP = 12;
const MOST = 200;
const LABEL = 70;
let WIDTH = WIDEST;

/** Chooses columns and draws them; hidden for rows without numbers. */
export class Chart {
  constructor() {
    this.x = el("select", { id: "chart-x", change: () => this.draw() });
    this.y = el("select", { id: "chart-y", change: () => this.draw() });
    this.kind = el("select", { id: "chart-kind", change: () => this.draw() }, el("option", {}, "bars"), el("option", {}, "line"));
    this.picture = el("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Chart" });
    this.note = el("p", { class: "quiet" });
    const labels = [["chart-x", "x", this.x], ["chart-y", "y", this.y], ["chart-kind", "as", this.kind]].map(([id, text, node]) => el("label", { class: "inline", for: id }, text, node));
    this.node = el("details", { class: "chart", hidden: true, open: true }, el("summary", {}, "Chart"), el("div", { class: "actions" }, ...labels), this.picture, this.note);
  }

  show(columns, rows) {
    const numeric = columns.map((_, i) => hasNumbers(rows, i));
    const y = numeric.findLastIndex(Boolean);
    this.node.hidden = y < 0 || rows.length < 2 || columns.length < 2;
    if (this.node.hidden) return;
    Object.assign(this, { columns, rows });
    const key = JSON.stringify([columns, numeric]);
    if (this.key !== key) {
      this.key = key;
      const others = columns.keys().filter((i) => i !== y);
      fill(this.x, columns, () => true, [...others][0]);
      fill(this.y, columns, (i) => numeric[i], y);
    }
    this.draw();
  }

  draw() {
    const [x, y] = [Number(this.x.value), Number(this.y.value)];
    const isLine = this.kind.value === "line";
    const known = this.rows.filter((row) => row[y] !== null);
    const ordered = isLine ? known.toSorted((one, other) => compare(one[x], other[x], hasNumbers(known, x))) : known;
    const points = ordered.slice(0, MOST).map((row) => ({ name: shownValue(row[x]), value: Number(row[y]) }));
    WIDTH = Math.min(WIDEST, Math.max(NARROWEST, this.picture.clientWidth || WIDEST));
    const label = `${this.columns[y]} over ${this.columns[x]}`;
    this.picture.replaceChildren(points.length ? drawn(points, isLine, label) : el("p", { class: "quiet" }, "There are no values."));
    this.note.textContent = known.length > MOST ? `The first ${count(MOST)} of ${count(known.length)} rows are drawn.` : "";
  }
}

function fill(select, columns, may, chosen) {
  select.replaceChildren(...columns.flatMap((name, i) => (may(i) ? [el("option", { value: i, selected: i === chosen }, name)] : [])));
}

/** Numbers, also those that are texts since they are exact. */
function hasNumbers(rows, i) {
  const known = rows.map((row) => row[i]).filter((value) => value !== null);
  return known.length > 0 && known.every((value) => typeof value === "number" || (typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value)));
}

function drawn(points, isLine, label) {
  const values = points.map((point) => point.value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = (WIDTH - LEFT - 8) / points.length;
  const x = (i) => LEFT + (i + 0.5) * step;
  const y = (value) => TOP + ((high - value) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const marks = isLine ? line(points, x, y) : points.map((point, i) => bar(point, x(i), y, step));
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart-picture", role: "img", "aria-label": said(points, label) }, ...axis(low, high, y), ...marks, ...names(points, x, step));
}

function bar({ name, value }, middle, y, step) {
  const width = Math.max(1, step * 0.72);
  const [top, bottom] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
  return svg("rect", { class: "chart-bar", x: middle - width / 2, y: top, width, height: Math.max(0.5, bottom - top) }, svg("title", {}, `${name}: ${value}`));
}

function line(points, x, y) {
  const path = svg("polyline", { class: "chart-line", points: points.map((point, i) => `${x(i).toFixed(1)},${y(point.value).toFixed(1)}`).join(" ") });
  const dots = points.length > 60 ? [] : points.map((point, i) => svg("circle", { class: "chart-dot", cx: x(i), cy: y(point.value), r: 3 }, svg("title", {}, `${point.name}: ${point.value}`)));
  return [path, ...dots];
}

function axis(low, high, y) {
  return [...new Set([low, (low + high) / 2, high, 0])].flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value < 0 ? `-${short(-value)}` : short(value)),
  ]);
}

/** Names below the points, as many as fit. */
function names(points, x, step) {
  const every = Math.ceil(LABEL / step);
  const fits = Math.max(4, Math.floor((every * step) / 6.5));
  return points.flatMap(({ name }, i) => (i % every ? [] : [svg("text", { class: "tick", x: x(i), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, name.length > fits ? `${name.slice(0, fits - 1)}…` : name)]));
}

function said(points, label) {
  const listed = points.slice(0, 20).map(({ name, value }) => `${name} ${value}`).join(", ");
  return `${label}: ${listed}${points.length > 20 ? ` and ${points.length - 20} more` : ""}`;
}
