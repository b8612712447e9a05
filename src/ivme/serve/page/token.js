// Asks for the token, once for all requests that wait for it. Whoever gives none is asked again only by the button.

import { keepToken, onToken } from "./api.js";
import { byId } from "./dom.js";

let waiting = null;
let declined = false;

/** Opens the dialog; the token, or null if it was closed without one. */
function opened(wasWrong) {
  const dialog = byId("token");
  const wrong = byId("token-wrong");
  byId("token-value").value = "";
  wrong.hidden = !wasWrong;
  wrong.textContent = wasWrong ? "That is not the token." : "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => resolve(dialog.returnValue === "given" ? byId("token-value").value.trim() : null);
    dialog.addEventListener("close", closed, { once: true });
  });
}

async function askNow(wasWrong) {
  const given = await opened(wasWrong);
  waiting = null;
  declined = given === null;
  byId("to-token").hidden = false;
  if (given !== null) keepToken(given);
  return given;
}

/** `again` is called when the button has led to a token. */
export function setUpToken(again) {
  onToken(async (wasWrong) => (declined ? null : (waiting ??= askNow(wasWrong))));
  byId("to-token").addEventListener("click", async () => {
    if ((await (waiting ??= askNow(false))) !== null) again();
  });
}
