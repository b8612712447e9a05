// Small plots over time: one or two lines, the newest value in large figures.

import { el, setText, svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 56;

/** A plot with `lines` of {name, kind}; `format` writes its values. The first line has the figure. Times are drawn by
 * their logarithms, since a slow one is many times a usual one. */
export class Plot {
  constructor(title, lines, format, unit = "", logarithms = false) {
    this.logarithms = logarithms;
    this.format = format;
    this.lines = lines.map(({ name, kind }) => ({ name, path: svg("path", { class: `line ${kind}` }) }));
    this.area = svg("path", { class: `area ${lines[0].kind}` });
    this.picture = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "plot" },
      svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
      this.area,
      ...this.lines.map((line) => line.path),
    );
    this.figure = el("span", { class: "figure" }, "–");
    this.detail = el("span", { class: "detail" });
    this.top = el("span", { class: "top-value" });
    this.title = title;
    this.node = el(
      "figure",
      { class: "tile" },
      el("figcaption", {}, title, " ", this.detail),
      el("p", { class: "now" }, this.figure, " ", unit ? el("span", { class: "unit" }, unit) : null),
      el("div", { class: "plot-box" }, this.top, this.picture),
    );
  }

  /** Draws columns of numbers, null where there is nothing; all lines share a scale. `over` says of which time they are. */
  show(columns, over) {
    const found = columns.flat().filter((value) => value !== null);
    const most = Math.max(0, ...found);
    const scale = this.logarithms ? logarithmic(Math.min(...found), most) : (value) => (most > 0 ? value / most : 0);
    this.lines.forEach((line, i) => line.path.setAttribute("d", path(columns[i], scale)));
    if (!this.logarithms) this.area.setAttribute("d", area(columns[0], scale));
    const last = columns.map((column) => column.at(-1));
    setText(this.figure, last[0] === null ? "–" : this.format(last[0]));
    setText(this.detail, columns.length < 2 || last[1] === null ? "" : `${this.lines[1].name} ${this.format(last[1])}`);
    setText(this.top, most > 0 ? `max ${this.format(most)}` : "");
    const said = last[0] === null ? "nothing now" : `${this.format(last[0])} now`;
    this.picture.setAttribute("aria-label", `${this.title}: ${said}, at most ${this.format(most)} in ${over}`);
  }
}

function logarithmic(least, most) {
  const low = Math.log(least / 2);
  return (value) => (Math.log(value) - low) / (Math.log(most) - low);
}

function place(column, scale) {
  const step = WIDTH / Math.max(1, column.length - 1);
  return column.map((value, i) => (value === null ? null : [i * step, HEIGHT - 1 - scale(value) * (HEIGHT - 6)]));
}

/** Neighbours are joined; a single value between gaps is a short dash, so that it can be seen. */
function path(column, scale) {
  const points = place(column, scale);
  return points
    .map((point, i) => {
      if (point === null) return "";
      const at = point.map((number) => number.toFixed(1)).join(" ");
      if (points[i - 1]) return `L${at}`;
      return points[i + 1] ? `M${at}` : `M${at}h1.5`;
    })
    .join("");
}

function area(column, scale) {
  const points = place(column.map((value) => value ?? 0), scale);
  return `M0 ${HEIGHT}${points.map(([x, y]) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join("")}L${WIDTH} ${HEIGHT}Z`;
}
