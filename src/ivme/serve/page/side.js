// The lists at the side: views with their guarantees, tables with their sizes; and the line on top.

import { ask } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { bytes, count, many } from "./format.js";
import { raised } from "./power.js";

export const viewHref = (name) => `#/view/${encodeURIComponent(name)}`;

/** Reads what there is, and shows it; the figures, or null if the server did not answer. */
export async function refresh() {
  try {
    const found = await ask("stats?_maps=false");
    showStatus("live", statusOf(found));
    showViews(found.views);
    showTables(found.tables);
    return found;
  } catch (error) {
    showStatus("lost", error.message);
    return null;
  }
}

function statusOf(found) {
  const rows = found.tables.reduce((sum, table) => sum + table.rows, 0);
  const parts = [`live, ${many(rows, "row")}`, bytes(found.memory_bytes)];
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

function showViews(views) {
  const list = byId("views");
  const key = JSON.stringify(views);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...(views.length ? views.map(viewItem) : [el("li", { class: "quiet" }, "There are no views yet.")]));
  markCurrent();
}

function viewItem(view) {
  const asks = Object.keys(view.parameters);
  return el(
    "li",
    {},
    el(
      "a",
      { href: viewHref(view.name) },
      el(
        "span",
        { class: "view-title" },
        el("span", { class: "view-name" }, ...breakable(view.name), asks.length ? el("span", { class: "given" }, `| ${asks.join(", ")}`) : null),
        " ",
        el("span", { class: "view-class" }, view.class),
      ),
      " ",
      el("span", { class: "view-bounds" }, ...raised(`update ${view.update}`)),
      " ",
      el("span", { class: "view-bounds" }, ...raised(`delay ${view.delay}`)),
    ),
  );
}

/** A name that may be broken behind its underscores. */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

/** Marks the view that the address names. */
export function markCurrent() {
  for (const link of document.querySelectorAll("#views a, #to-explain")) {
    if (link.getAttribute("href") === location.hash) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Only the numbers of rows change from time to time: what has the focus stays. */
function showTables(tables) {
  const list = byId("tables");
  const key = JSON.stringify(tables.map((table) => ({ ...table, rows: null })));
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...(tables.length ? tables.map(tableItem) : [el("li", { class: "quiet" }, "There are no tables yet.")]));
  }
  list.querySelectorAll(".rows-count").forEach((node, i) => setText(node, count(tables[i].rows)));
}

function tableItem(table) {
  const promises = [table.append_only ? "append-only" : "", table.static ? "static" : ""].filter(Boolean);
  const columns = Object.entries(table.columns).map(([name, type]) => {
    const isKey = table.primary_key?.includes(name);
    return el("li", {}, name, " ", el("span", { class: "type" }, isKey ? `${type}, key` : type));
  });
  return el(
    "li",
    {},
    el(
      "details",
      {},
      el("summary", {}, el("span", {}, table.name), " ", el("span", { class: "rows-count" })),
      promises.length ? el("p", { class: "quiet" }, promises.join(", ")) : null,
      el("ul", { class: "columns-list" }, ...columns),
    ),
  );
}
