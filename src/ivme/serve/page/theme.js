// Light, dark, or as the system has it.

import { byId, setText } from "./dom.js";

const THEMES = ["system", "light", "dark"];

function show(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(byId("theme-name"), theme);
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`);
}

export function setUpTheme() {
  let theme = localStorage.getItem("ivme-theme") ?? "system";
  if (!THEMES.includes(theme)) theme = "system";
  show(theme);
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("ivme-theme", theme);
    show(theme);
  });
}
