// The lists at the side: views and tables; and the line on top.

import { ask } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { bytes, count, many, short } from "./format.js";

export const viewHref = (name) => `#/view/${encodeURIComponent(name)}`;
export const tableHref = (name) => `#/table/${encodeURIComponent(name)}`;

/** On a narrow screen the lists are behind a line of their own, which closes when a screen is chosen. */
export function setUpLists() {
  const [lists, narrow] = [byId("lists"), matchMedia("(max-width: 860px)")];
  const fit = () => (lists.open = !narrow.matches);
  narrow.addEventListener("change", fit);
  window.addEventListener("hashchange", fit);
  fit();
}

/** Reads what there is, and shows it; the figures, or null if the server did not answer. */
export async function refresh() {
  try {
    const found = await ask("stats?_maps=false");
    showStatus("live", statusOf(found));
    showViews(found.views, found.broken_views);
    showTables(found.tables);
    setText(byId("listed"), `${many(found.views.length + found.broken_views.length, "view")}, ${many(found.tables.length, "table")}`);
    return found;
  } catch (error) {
    showStatus("lost", error.message);
    return null;
  }
}

function statusOf(found) {
  const rows = found.tables.reduce((sum, table) => sum + table.rows, 0);
  const parts = [`live, ${many(rows, "row")} in tables`, bytes(found.memory_bytes)];
  const batch = found.sources.pipeline;
  if (batch !== undefined) parts.push(`pipeline at batch ${count(batch)}`);
  if (found.subscribers) parts.push(many(found.subscribers, "subscriber"));
  return parts.join(", ");
}

function showStatus(state, text) {
  const status = byId("status");
  status.querySelector(".dot").dataset.state = state;
  setText(status.querySelector(".text"), text);
}

function showViews(views, broken) {
  const items = [...views.map(viewItem), ...broken.map(brokenItem)];
  showList("views", JSON.stringify([views, broken]), items.length ? items : [el("li", { class: "quiet" }, "There are no views yet.")]);
}

function showList(id, key, items) {
  const list = byId(id);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...items);
  markCurrent();
}

function viewItem(view) {
  const asks = Object.keys(view.parameters);
  const given = asks.length ? el("span", { class: "given" }, `by ${asks.join(", ")}`) : null;
  const columns = Object.keys(view.columns).join(", ");
  return el("li", {}, el("a", { href: viewHref(view.name) }, el("span", { class: "view-name" }, ...breakable(view.name)), " ", given, " ", el("span", { class: "view-columns" }, columns)));
}

function brokenItem(view) {
  return el("li", {}, el("a", { href: viewHref(view.name) }, el("span", { class: "view-name" }, ...breakable(view.name)), " ", el("span", { class: "wrong" }, "broken")));
}

/** A name that may be broken behind its underscores. */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

/** Marks the screen that the address names. */
export function markCurrent() {
  for (const link of document.querySelectorAll("#views a, #tables a, .to-screen")) {
    if (link.getAttribute("href") === location.hash) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Only the numbers of rows change from time to time: what has the focus stays. */
function showTables(tables) {
  const key = JSON.stringify(tables.map((table) => table.name));
  showList("tables", key, tables.length ? tables.map(tableItem) : [el("li", { class: "quiet" }, "There are no tables yet.")]);
  byId("tables").querySelectorAll(".rows-count").forEach((node, i) => {
    setText(node, `${short(tables[i].rows)} ${tables[i].rows === 1 ? "row" : "rows"}`);
    node.title = many(tables[i].rows, "stored row");
  });
}

function tableItem(table) {
  return el("li", {}, el("a", { href: tableHref(table.name), class: "table-link" }, el("span", { class: "view-name" }, ...breakable(table.name)), " ", el("span", { class: "rows-count" })));
}
