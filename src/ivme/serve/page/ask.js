// An access request: a field for each parameter, and the rows in pages.

import { ask, pathTo } from "./api.js";
import { card, el, setText } from "./dom.js";
import { many, time } from "./format.js";
import { field } from "./fields.js";
import { every } from "./polling.js";
import { rowsTable } from "./rows.js";

const SIZES = [10, 100, 1000];

/** The card for a view; `stop` ends what it asks for again. */
export class Asking {
  constructor(view) {
    this.view = view;
    this.pages = [];
    this.at = 0;
    this.again = null;
    this.took = 0;
    this.result = el("div", { class: "result scroller", tabindex: 0, role: "group", "aria-label": `Rows of ${view.name}`, hidden: true });
    this.message = el("p", { class: "message", role: "status" });
    this.size = el("select", { id: "page-size", change: () => this.start() }, ...SIZES.map((size) => el("option", { value: size }, `${size}`)));
    this.live = el("input", { type: "checkbox", id: "ask-again", change: () => this.follow() });
    this.previous = el("button", { type: "button", click: () => this.turn(-1) }, "Previous");
    this.next = el("button", { type: "button", click: () => this.turn(1) }, "Next");
    this.paging = el("div", { class: "paging", hidden: true }, this.previous, this.next);
    this.form = this.makeForm();
    this.node = card("Ask", { class: "ask" }, this.form, this.message, this.result, this.paging);
  }

  makeForm() {
    const fields = Object.entries(this.view.parameters).map(([name, type]) => field(name, type));
    const none = fields.length ? null : el("p", { class: "quiet" }, "This view takes no parameters: it is asked for as a whole.");
    const submit = (event) => {
      event.preventDefault();
      this.start();
    };
    return el(
      "form",
      { submit },
      none,
      el("div", { class: "fields" }, ...fields),
      el(
        "div",
        { class: "actions" },
        el("button", { class: "primary", type: "submit" }, "Ask"),
        el("label", { class: "inline", for: "ask-again" }, this.live, "again every second"),
        el("label", { class: "inline", for: "page-size" }, "rows a page", this.size),
      ),
    );
  }

  path(cursor = null) {
    const given = Object.fromEntries(new FormData(this.form));
    const query = cursor === null ? { ...given, _limit: this.size.value } : { _limit: this.size.value, _cursor: cursor };
    return pathTo(["views", this.view.name], query);
  }

  /** Asks anew, for the first page. */
  async start() {
    if (!this.form.reportValidity()) return;
    const begun = performance.now();
    await this.read(null, (page) => {
      this.pages = [page];
      this.at = 0;
      this.took = (performance.now() - begun) / 1000;
    });
  }

  async turn(step) {
    const wanted = this.at + step;
    if (wanted < this.pages.length) {
      this.at = wanted;
      this.show();
      return;
    }
    await this.read(this.pages.at(-1).next, (page) => {
      this.pages.push(page);
      this.at = wanted;
    });
  }

  async read(cursor, keep) {
    try {
      keep(await ask(this.path(cursor)));
      this.show();
    } catch (error) {
      this.live.checked = false;
      this.follow();
      this.message.classList.add("wrong");
      setText(this.message, error.message);
    }
  }

  show() {
    const page = this.pages[this.at];
    const before = this.pages.slice(0, this.at).reduce((sum, each) => sum + each.rows.length, 0);
    const more = page.next !== null;
    const range = before || more ? `rows ${before + 1} to ${before + page.rows.length}` : many(page.rows.length, "row");
    this.message.classList.remove("wrong");
    setText(this.message, page.rows.length ? `${range}, answered in ${time(this.took)}` : `no rows, answered in ${time(this.took)}`);
    this.result.replaceChildren(rowsTable(page, this.view));
    this.result.hidden = !page.rows.length;
    this.previous.disabled = this.at === 0;
    this.next.disabled = !more;
    this.paging.hidden = this.at === 0 && !more;
  }

  /** Asks again every second, or no longer; less often if that takes the server much of its time. */
  follow() {
    this.stop();
    if (this.live.checked) this.again = every(1, () => this.start().then(() => Math.max(1, 10 * this.took)));
  }

  stop() {
    this.again?.();
    this.again = null;
  }
}
