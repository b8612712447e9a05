// The rows of a view, live: at once, or as soon as its parameters have values.

import { card, el, setText } from "./dom.js";
import { field } from "./fields.js";
import { count, many } from "./format.js";
import { Grid, rowsSaid } from "./grid.js";
import { LiveRows } from "./live.js";

const PAUSE = 150;

/** The card of rows; `stop` ends what it listens to. */
export class Data {
  constructor(view) {
    this.view = view;
    this.live = new LiveRows(view, () => this.soon());
    this.grid = new Grid(`Rows of ${view.name}`);
    this.message = el("p", { class: "message", role: "status" });
    this.isLive = el("input", { type: "checkbox", id: "is-live", checked: true, change: () => this.follow() });
    this.toggle = el("label", { class: "inline", for: "is-live" }, this.isLive, "live");
    this.form = this.makeForm();
    this.node = card("Rows", { class: "data" }, this.form, el("div", { class: "told" }, this.message, this.toggle), this.grid.node);
    if (this.isReady()) this.start();
    else setText(this.message, `Enter ${Object.keys(view.parameters).join(", ")} to see rows.`);
  }

  makeForm() {
    const { parameters, lists = [], defaults = {} } = this.view;
    const names = Object.keys(parameters);
    if (!names.length) return null;
    const fields = names.map((name) => field(name, parameters[name], { isList: lists.includes(name), given: defaults[name] }));
    const submit = (event) => {
      event.preventDefault();
      this.isLive.checked = true;
      this.start();
    };
    return el("form", { submit }, el("div", { class: "fields" }, ...fields, el("button", { class: "primary", type: "submit" }, "Ask")));
  }

  isReady() {
    return Object.keys(this.view.parameters).every((name) => name in (this.view.defaults ?? {}));
  }

  /** Names and values; a list is given with commas. */
  parameters() {
    if (this.form === null) return [];
    const lists = this.view.lists ?? [];
    return [...new FormData(this.form)].flatMap(([name, text]) => (lists.includes(name) ? text.split(",").map((part) => [name, part.trim()]) : [[name, text]]));
  }

  start() {
    if (this.form !== null && !this.form.reportValidity()) return;
    setText(this.message, "…");
    this.live.start(this.parameters());
  }

  /** Goes on, or stays at what is shown. */
  follow() {
    if (this.isLive.checked) return this.start();
    this.live.stop();
    this.draw();
  }

  /** Draws some times a second, however often something changes. */
  soon() {
    this.timer ??= setTimeout(() => this.draw(), PAUSE);
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const { state, error, rows, whole } = this.live;
    this.message.classList.toggle("wrong", Boolean(error));
    setText(this.message, error ? error : this.said());
    if (state !== "live") return;
    const listed = [...rows].map(([key, each]) => ({ key, ...each }));
    this.grid.show({ columns: Object.keys(this.view.columns), types: this.view.columns, rows: listed, times: whole && listed.some((each) => each.n > 1) });
  }

  said() {
    const { rows, total, whole, isFollowed } = this.live;
    const parts = [whole ? rowsSaid(total, rows.size) : isFollowed ? `${many(total, "row")}; ${count(rows.size)} of them are here, and sorted` : `more than ${many(total, "row")}; the first are here`];
    if (!Object.keys(this.view.columns).length) parts.push("without columns");
    if (!this.isLive.checked) parts.push("paused");
    else parts.push(isFollowed ? "changes are shown as they come" : "read again every second");
    return parts.join(" · ");
  }

  stop() {
    clearTimeout(this.timer);
    this.live.stop();
  }
}
