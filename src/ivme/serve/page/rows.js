// Rows in a table, by the types of their columns.

import { el } from "./dom.js";

const NUMBERS = /^(int|float|decimal)/;

export function rowsTable(page, view) {
  const types = page.columns.map((name) => view.columns[name] ?? "");
  const head = page.columns.map((name, i) => el("th", { scope: "col", class: align(types[i]) }, name, " ", el("span", { class: "type" }, types[i])));
  const rows = page.rows.map((row) => el("tr", {}, ...row.map((value, i) => cell(value, types[i]))));
  if (!page.columns.length) return el("p", { class: "quiet" }, "This view has no columns: a row says only that there is one.");
  return el("table", { class: "rows" }, el("caption", { class: "hidden" }, `Rows of ${view.name}`), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

function cell(value, type) {
  if (value === null) return el("td", { class: `null ${align(type)}` }, "NULL");
  return el("td", { class: align(type) }, String(value));
}

const align = (type) => (NUMBERS.test(type) ? "number" : "");
