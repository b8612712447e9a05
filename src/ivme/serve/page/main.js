// The page: lists at the side, what happens now, and the screen that the address names.

import { activityScreen } from "./activity.js";
import { docsScreen } from "./docs.js";
import { byId, el } from "./dom.js";
import { every } from "./polling.js";
import { markCurrent, refresh, setUpLists, viewHref } from "./side.js";
import { SqlScreen } from "./sql.js";
import { tableScreen } from "./table.js";
import { setUpTheme } from "./theme.js";
import { setUpToken } from "./token.js";
import { viewScreen } from "./view.js";

let known = null;
let shown = null;
let stop = () => {};
const sql = new SqlScreen(look, showMade);

/** What the address names: {screen, name}. */
function address() {
  const [, screen = "", name = ""] = location.hash.split("/");
  try {
    return { screen, name: decodeURIComponent(name) };
  } catch {
    return { screen: "", name: "" };
  }
}

function show({ focus }) {
  markCurrent();
  const { screen, name } = address();
  if (screen === "sql" || screen === "explain") return showFixed("sql", "SQL", () => sql.open(width()), focus);
  if (screen === "activity") return showFixed("activity", "Activity", activityScreen, focus);
  if (screen === "docs") return showFixed("docs", "HTTP", docsScreen, focus);
  if (known === null) return;
  if (screen === "table") return showOne("table", known.tables, name, (node, table) => tableScreen(node, table, () => known.tables.find((each) => each.name === name)), focus);
  if (screen !== "view" && known.views.length) {
    history.replaceState(null, "", viewHref(known.views[0].name));
    return show({ focus });
  }
  const broken = known.broken_views.find((each) => each.name === name);
  if (broken) return showNothing(`View ${name} could not be built: ${broken.broken}`);
  if (screen !== "view") return showNothing("There are no views yet. Write a query under SQL, and make it a view.");
  showOne("view", known.views, name, (node, view) => viewScreen(node, view, width(), { write, dropped: look }), focus);
}

const width = () => Math.max(280, byId("screen").clientWidth * 0.55 - 60);

/** A screen that is always there; `open` gives its node and what ends it. */
function showFixed(name, title, open, focus) {
  if (shown === name) return;
  change(name);
  document.title = `${title} · ivme`;
  const { node, stop: ending, first } = open();
  stop = ending;
  byId("screen").replaceChildren(node);
  if (focus) first.focus();
}

/** The screen of a view or a table. */
function showOne(kind, all, name, open, focus) {
  const found = all.find((each) => each.name === name);
  if (!found) return showNothing(`There is no ${kind} ${name}.`);
  const key = `${kind} ${name} ${found.query ?? ""}`;
  if (shown === key) return;
  change(key);
  document.title = `${name} · ivme`;
  const node = el("div", {});
  stop = open(node, found);
  byId("screen").replaceChildren(node);
  if (focus) node.querySelector("h1").focus();
}

/** Ends the screen that is shown. */
function change(name) {
  stop();
  shown = name;
  stop = () => {};
}

function showNothing(text) {
  if (shown === "nothing" && byId("screen").textContent === text) return;
  change("nothing");
  byId("screen").replaceChildren(el("p", { class: "card", role: "status" }, text));
}

async function look() {
  const found = await refresh();
  if (found === null) return;
  known = found;
  show({ focus: false });
}

/** Shows a view that was just made. */
async function showMade(name) {
  await look();
  location.hash = viewHref(name);
}

/** Puts a text into the editor. */
function write(text) {
  location.hash = "#/sql";
  sql.write(text);
}

setUpTheme();
setUpLists();
setUpToken(look);
window.addEventListener("hashchange", () => show({ focus: true }));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
show({ focus: false });
every(3, look);
