// The screen of one table: its first rows, and its columns.

import { ask, pathTo } from "./api.js";
import { card, el, setText } from "./dom.js";
import { count, many } from "./format.js";
import { Grid } from "./grid.js";
import { every } from "./polling.js";

const MOST = 500;

/** Shows a table in a node; gives what ends it. `find` gives the table as it is now, or nothing if it is gone. */
export function tableScreen(node, table, find) {
  const grid = new Grid(`Rows of ${table.name}`);
  const message = el("p", { class: "message", role: "status" }, "…");
  const title = el("h1", { tabindex: -1 }, table.name);
  node.replaceChildren(el("div", { class: "title" }, title), card("Rows", { class: "data" }, message, grid.node), columnsCard(table));
  let last = null;
  return every(2, async () => {
    const begun = performance.now();
    try {
      const page = await ask(pathTo(["tables", table.name], { _limit: MOST }));
      const rows = keyed(page.rows, last);
      last = new Map(rows.map((each) => [each.key, each.at]));
      grid.show({ columns: page.columns, types: table.columns, rows });
      setText(message, said(find()?.rows ?? rows.length, rows.length));
    } catch (error) {
      setText(message, error.message);
    }
    return Math.max(2, (10 * (performance.now() - begun)) / 1000);
  });
}

/** Rows with keys, the same row several times with several; those that were not there before have changed now. */
function keyed(rows, last) {
  const seen = new Map();
  const now = performance.now();
  return rows.map((row) => {
    const text = JSON.stringify(row);
    const n = (seen.get(text) ?? 0) + 1;
    seen.set(text, n);
    const key = `${n} ${text}`;
    return { key, row, n: 1, at: last === null ? -Infinity : (last.get(key) ?? now) };
  });
}

/** A table counts what it stores: a row that is there several times may be stored once, or several times. */
function said(stored, shown) {
  return shown < MOST ? many(shown, "row") : `${many(stored, "stored row")}; the first ${count(shown)} are here`;
}

function columnsCard(table) {
  const head = ["column", "type", ""].map((name) => el("th", { scope: "col" }, name));
  const rows = Object.entries(table.columns).map(([name, type]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, type), el("td", {}, promises(table, name))));
  const whole = [table.append_only ? "append-only: rows are never deleted" : "", table.static ? "static: it seldom changes" : ""].filter(Boolean);
  return card(
    "Columns",
    { class: "schema" },
    el("table", { class: "figures" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)),
    whole.length ? el("p", { class: "quiet" }, whole.join("; ")) : null,
  );
}

function promises(table, name) {
  const found = [];
  if (table.primary_key?.includes(name)) found.push("primary key");
  if (table.unique.some((columns) => columns.includes(name))) found.push("unique");
  if (table.not_null.includes(name)) found.push("not null");
  for (const [columns, other] of Object.entries(table.references)) {
    if (columns.split(", ").includes(name)) found.push(`references ${other}`);
  }
  return found.join(", ");
}
