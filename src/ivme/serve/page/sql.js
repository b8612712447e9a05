// The screen for SQL: an editor, what it would cost as a view, the result in a grid and a chart, and earlier statements.

import { ask } from "./api.js";
import { Chart } from "./chart.js";
import { card, el, setText } from "./dom.js";
import { AsView } from "./explain.js";
import { count, many, time } from "./format.js";
import { Grid } from "./grid.js";
import { Statements } from "./history.js";
import { Given } from "./given.js";

const MOST = 5000;
const HINT = "Ctrl-Enter runs it. Any statement of SQL over the tables and views here.";

/** What was typed is kept while the page is open. `changed` is called when statements may have changed something. */
export class SqlScreen {
  constructor(changed, made) {
    this.changed = changed;
    this.text = el("textarea", { id: "sql", rows: 9, spellcheck: "false", autocomplete: "off", "aria-describedby": "sql-hint", input: () => this.typed(), keydown: (event) => this.pressed(event) });
    this.run = el("button", { type: "button", class: "primary", click: () => this.execute() }, "Run");
    this.given = new Given();
    this.message = el("p", { class: "message", role: "status" });
    this.wrong = el("pre", { class: "wrong", role: "alert", hidden: true });
    this.asView = new AsView(made, (types) => this.given.typed(types));
    this.grid = new Grid("Rows of the result");
    this.chart = new Chart();
    this.result = card("Result", { class: "answer", hidden: true }, this.message, this.wrong, this.grid.node, this.chart.node);
    this.history = new Statements((text) => this.write(text));
    this.node = this.makeNode();
  }

  makeNode() {
    const editor = card("Statement", { class: "editor" }, el("label", { for: "sql", class: "hidden" }, "SQL"), this.text, this.given.node, el("div", { class: "actions" }, this.run, el("p", { class: "quiet", id: "sql-hint" }, HINT)), this.history.node);
    return el(
      "div",
      {},
      el("div", { class: "title" }, el("h1", { tabindex: -1 }, "SQL")),
      el("div", { class: "sql-parts" }, editor, this.result, this.asView.node, this.asView.why),
    );
  }

  /** Its node, for a screen of some width. */
  open(width) {
    this.asView.width = width;
    return { node: this.node, stop: () => {}, first: this.text };
  }

  write(text) {
    this.text.value = text;
    this.typed();
    this.text.focus();
  }

  typed() {
    this.asView.typed(this.text.value);
    this.given.find(this.text.value);
  }

  pressed(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.execute();
  }

  async execute() {
    const sql = this.text.value;
    if (!sql.trim() || this.run.disabled) return;
    this.run.disabled = true;
    this.result.hidden = false;
    this.tell("…", "");
    const begun = performance.now();
    try {
      const found = await ask(`sql?_limit=${MOST + 1}`, { body: { sql, parameters: this.given.values() } });
      this.show(sql, found, `in ${time((performance.now() - begun) / 1000)}`);
    } catch (error) {
      this.tell("", error.message);
      this.point(error.message);
      this.history.add(sql, "failed");
    }
    this.run.disabled = false;
    this.changed();
  }

  show(sql, found, took) {
    if (!found.columns) {
      this.tell(`${found.message}, ${took}`, "");
      this.history.add(sql, found.message);
      return;
    }
    const rows = found.rows.slice(0, MOST);
    const said = rows.length < found.rows.length ? `more than ${count(MOST)} rows; the first are here` : many(rows.length, "row");
    this.tell(`${said}, ${took}`, "");
    this.grid.node.hidden = false;
    this.grid.show({ columns: found.columns, rows: rows.map((row, i) => ({ key: `${i} ${JSON.stringify(row)}`, row, n: 1 })), ordered: true });
    this.chart.show(found.columns, rows);
    this.history.add(sql, said);
  }

  tell(message, wrong) {
    setText(this.message, message);
    setText(this.wrong, wrong);
    this.wrong.hidden = !wrong;
    this.grid.node.hidden = true;
    this.chart.node.hidden = true;
  }

  /** Puts the cursor where an error says that it is. */
  point(message) {
    const found = /\(line (\d+), column (\d+)\)/.exec(message);
    if (found === null) return;
    const [line, column] = found.slice(1).map(Number);
    const before = this.text.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    const word = /^[\w.]*/.exec(this.text.value.slice(at))[0].length;
    this.text.focus();
    this.text.setSelectionRange(at, at + Math.max(1, word));
  }
}
