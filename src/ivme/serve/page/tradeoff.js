// Exponents of N over ε: what an update costs, what a row costs, and where the view is now.

import { el, svg } from "./dom.js";
import { raised } from "./power.js";

const WIDTH = 340;
const HEIGHT = 210;
const LEFT = 38;
const BOTTOM = 34;
const TOP = 14;
const RIGHT = 14;
const LINES = [["update", "update"], ["delay", "delay of a row"], ["space", "space"]];

/** The curve of an explanation at an ε (None if there is none, or several); None if its bounds depend on no ε. */
export function tradeoffPicture(explanation, epsilon) {
  const curve = explanation.tradeoff;
  if (curve === null) return null;
  const lines = LINES.filter(([name]) => curve[name]);
  const most = Math.max(1, ...lines.flatMap(([name]) => curve[name]));
  const x = (at) => LEFT + at * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const drawn = lines.map(([name]) => {
    const points = curve.epsilon.map((at, i) => `${x(at).toFixed(1)},${y(curve[name][i]).toFixed(1)}`);
    return svg("polyline", { class: `curve ${name}`, points: points.join(" ") });
  });
  const marks = epsilon === null ? [] : pointsAt(lines, curve, epsilon, x, y);
  const label = epsilon === null ? "" : ` At ε = ${shown(epsilon)}: ${lines.map(([name, text]) => `${text} N^${shown(valueAt(curve, name, epsilon))}`).join(", ")}.`;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "tradeoff", role: "img", "aria-label": `Exponents of N over ε.${label}` },
    ...axes(most, x, y),
    ...lowest(explanation, x, y),
    ...drawn,
    ...marks,
  );
  return el("figure", { class: "curve-box" }, picture, el("figcaption", {}, key(lines, curve, epsilon)));
}

function axes(most, x, y) {
  const steps = most > 2 ? [0, 1, 2, 3].filter((value) => value <= most) : [0, 0.5, 1, 1.5, 2].filter((value) => value <= most);
  const rows = steps.flatMap((value) => [
    svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, shown(value)),
  ]);
  const columns = [0, 0.25, 0.5, 0.75, 1].map((at) =>
    svg("text", { class: "tick", x: x(at), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, shown(at)),
  );
  const names = [
    svg("text", { class: "axis", x: x(0.5), y: HEIGHT - 2, "text-anchor": "middle" }, "ε"),
    svg("text", { class: "axis", x: 10, y: y(most / 2), "text-anchor": "middle", transform: `rotate(-90 10 ${y(most / 2)})` }, "exponent of N"),
  ];
  return [...rows, ...columns, ...names];
}

function lowest(explanation, x, y) {
  const value = fraction(explanation.lower_bound?.exponent ?? "");
  if (value === null || value === 0) return [];
  return [
    svg("line", { class: "lowest", x1: x(0), x2: x(1), y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: x(1), y: y(value) - 4, "text-anchor": "end" }, `lower bound ${shown(value)}`),
  ];
}

function pointsAt(lines, curve, epsilon, x, y) {
  return [
    svg("line", { class: "here", x1: x(epsilon), x2: x(epsilon), y1: y(0), y2: TOP }),
    ...lines.map(([name]) => svg("circle", { class: `point ${name}`, cx: x(epsilon), cy: y(valueAt(curve, name, epsilon)), r: 4.5 })),
  ];
}

function key(lines, curve, epsilon) {
  const rows = lines.map(([name, text]) => {
    const value = epsilon === null ? null : valueAt(curve, name, epsilon);
    return el("li", {}, el("span", { class: `swatch line-${name}` }), el("span", {}, ...(value === null ? [text] : raised(`${text} N^${shown(value)}`))));
  });
  return el("div", {}, epsilon === null ? null : el("p", { class: "here-text" }, `now at ε = ${shown(epsilon)}`), el("ul", { class: "legend" }, ...rows));
}

function valueAt(curve, name, epsilon) {
  const at = epsilon * (curve.epsilon.length - 1);
  const low = Math.min(Math.floor(at), curve.epsilon.length - 2);
  const share = at - low;
  return curve[name][low] * (1 - share) + curve[name][low + 1] * share;
}

/** "3/2" -> 1.5; None if the text is no number. */
export function fraction(text) {
  const found = /^(\d+)(?:\/(\d+))?$/.exec(text);
  return found === null ? null : Number(found[1]) / Number(found[2] ?? 1);
}

const shown = (number) => String(Number(number.toFixed(2)));
