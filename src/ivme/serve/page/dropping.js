// Asks before a view is dropped.

import { ask, pathTo } from "./api.js";
import { el, setText } from "./dom.js";

/** A button that drops a view after a confirmation; `dropped` is called then. */
export function dropButton(view, dropped) {
  return el("button", { type: "button", class: "danger", click: () => confirm(view, dropped) }, "Drop view");
}

function confirm(view, dropped) {
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const drop = async () => {
    try {
      await ask(pathTo(["views", view.name]), { method: "DELETE" });
      dialog.close();
      await dropped();
    } catch (error) {
      setText(wrong, error.message);
      wrong.hidden = false;
    }
  };
  const buttons = el("div", { class: "actions" }, el("button", { type: "button", class: "danger", click: drop }, "Drop it"), el("button", { type: "button", autofocus: true, click: () => dialog.close() }, "Cancel"));
  const dialog = el("dialog", { "aria-labelledby": "drop-title", close: () => dialog.remove() }, el("h2", { id: "drop-title" }, `Drop view ${view.name}?`), el("p", {}, "Who follows it is told that it is gone. The tables that it reads stay as they are."), wrong, buttons);
  document.body.append(dialog);
  dialog.showModal();
}
