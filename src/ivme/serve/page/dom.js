// Elements from plain values. Text only ever becomes text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

/** An element of HTML; functions among the attributes listen to the event of their name. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An element of SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

/** Shows a text only if it is another one, so that nothing is read out twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A part of a screen with a heading. */
export function card(title, attributes, ...children) {
  const id = `h-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  const { class: kind = "", ...rest } = attributes;
  return el("section", { class: `card ${kind}`.trim(), "aria-labelledby": id, ...rest }, el("h2", { id }, title), ...children);
}
