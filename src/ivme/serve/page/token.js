// Asks for the token, once for all requests that wait for it.

import { keepToken, onToken } from "./api.js";
import { byId } from "./dom.js";

let waiting = null;

function askNow(wasWrong) {
  const dialog = byId("token");
  const value = byId("token-value");
  const wrong = byId("token-wrong");
  value.value = "";
  wrong.hidden = !wasWrong;
  wrong.textContent = wasWrong ? "That is not the token." : "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        waiting = null;
        const given = value.value.trim();
        byId("to-token").hidden = false;
        if (given) keepToken(given);
        resolve(given || null);
      },
      { once: true },
    );
  });
}

export function setUpToken(again) {
  onToken((wasWrong) => (waiting ??= askNow(wasWrong)));
  byId("to-token").addEventListener("click", async () => {
    if ((await (waiting ??= askNow(false))) !== null) again();
  });
}
