// The page: lists at the side, what happens now, and the screen that the address names.

import { setUpActivity } from "./activity.js";
import { byId, el } from "./dom.js";
import { Explaining } from "./explain.js";
import { every } from "./polling.js";
import { markCurrent, refresh, viewHref } from "./side.js";
import { setUpTheme } from "./theme.js";
import { setUpToken } from "./token.js";
import { viewScreen } from "./view.js";

let known = null;
let shown = null;
let turn = 0;
let stop = () => {};
const explaining = new Explaining();

/** What the address names: {screen, name}. */
function address() {
  const [, screen = "", name = ""] = location.hash.split("/");
  try {
    return { screen, name: decodeURIComponent(name) };
  } catch {
    return { screen: "", name: "" };
  }
}

async function show({ focus }) {
  markCurrent();
  const { screen, name } = address();
  const width = Math.max(280, byId("screen").clientWidth * 0.55 - 60);
  if (screen === "explain") {
    change("explain");
    explaining.width = width;
    byId("screen").replaceChildren(explaining.node);
    document.title = "Explain a query · ivme";
    if (focus) explaining.text.focus();
    return;
  }
  if (known === null) return;
  const view = known.views.find((each) => each.name === name) ?? (screen === "view" ? null : known.views[0]);
  if (!view) return showNothing(screen === "view" ? `There is no view ${name}.` : "There are no views yet. Explain a query, or make one with POST /views.");
  if (screen !== "view") {
    history.replaceState(null, "", viewHref(view.name));
    markCurrent();
  }
  if (shown === `view ${view.name}`) return;
  change(`view ${view.name}`);
  document.title = `${view.name} · ivme`;
  await showView(view, width, focus);
}

async function showView(view, width, focus) {
  const mine = turn;
  const node = el("div", {});
  try {
    const ending = await viewScreen(node, view, width);
    if (turn !== mine) return ending();
    stop = ending;
    byId("screen").replaceChildren(node);
    if (focus) node.querySelector("h1").focus();
  } catch (error) {
    if (turn === mine) showNothing(error.message);
  }
}

/** Ends the screen that is shown; whatever is still on its way to it comes too late. */
function change(name) {
  stop();
  turn += 1;
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
  if (shown === null || shown === "nothing") await show({ focus: false });
}

setUpTheme();
setUpToken(look);
setUpActivity();
window.addEventListener("hashchange", () => show({ focus: true }));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
show({ focus: false });
every(3, look);
