// Rows in a table: sorted by a column, in pages, and those that have just changed flash.

import { el, setText } from "./dom.js";
import { count, many } from "./format.js";
import { compare, isNumeric, shownValue } from "./values.js";

export const PAGE = 100;
const FLASH = 1500;

/** A table named by a label. `show` takes {columns, types, rows}; a row is {row, n, at} with its key. */
export class Grid {
  constructor(label) {
    this.shown = new Map();
    this.sorted = { column: 0, down: false, chosen: false };
    this.at = 0;
    this.head = el("tr", {});
    this.body = el("tbody", {});
    this.box = el(
      "div",
      { class: "result scroller", tabindex: 0, role: "group", "aria-label": label, hidden: true },
      el("table", { class: "rows" }, el("caption", { class: "hidden" }, label), el("thead", {}, this.head), this.body),
    );
    this.range = el("span", { class: "quiet" });
    this.previous = el("button", { type: "button", click: () => this.turn(-1) }, "Previous");
    this.next = el("button", { type: "button", click: () => this.turn(1) }, "Next");
    this.paging = el("div", { class: "paging", hidden: true }, this.previous, this.next, this.range);
    this.node = el("div", { class: "grid-box" }, this.box, this.paging);
  }

  /** `times` shows how often each row is there; `ordered` leaves the rows in their order until a column is chosen. */
  show({ columns, types = {}, rows, times = false, ordered = false }) {
    const kinds = columns.map((name, i) => isNumeric(types[name], rows.slice(0, PAGE).map((each) => each.row[i])));
    const key = JSON.stringify([columns, types, kinds, times]);
    if (this.key !== key) {
      this.key = key;
      this.shown.clear();
      this.body.replaceChildren();
      this.at = 0;
      this.sorted = { column: 0, down: false, chosen: false };
    }
    Object.assign(this, { columns, types, kinds, rows, times, ordered });
    this.draw();
  }

  draw() {
    this.drawHead();
    const rows = this.order();
    const last = Math.max(0, Math.ceil(rows.length / PAGE) - 1);
    this.at = Math.min(this.at, last);
    const start = this.at * PAGE;
    this.place(rows.slice(start, start + PAGE));
    this.box.hidden = rows.length === 0 || this.columns.length === 0;
    this.paging.hidden = last === 0;
    this.previous.disabled = this.at === 0;
    this.next.disabled = this.at === last;
    setText(this.range, `rows ${count(start + 1)} to ${count(Math.min(rows.length, start + PAGE))} of ${count(rows.length)}`);
  }

  order() {
    if (this.ordered && !this.sorted.chosen) return this.rows;
    const { column, down } = this.sorted;
    const turn = [column, ...this.columns.keys()];
    const sign = down ? -1 : 1;
    return this.rows.toSorted((one, other) => {
      for (const i of turn) {
        const found = compare(one.row[i], other.row[i], this.kinds[i]);
        if (found) return i === column && one.row[i] !== null && other.row[i] !== null ? sign * found : found;
      }
      return 0;
    });
  }

  drawHead() {
    const { column, down, chosen } = this.sorted;
    const isSorted = chosen || !this.ordered;
    const key = JSON.stringify([this.key, this.sorted, isSorted]);
    if (this.headKey === key) return;
    this.headKey = key;
    const focused = [...this.head.children].findIndex((each) => each.contains(document.activeElement));
    const cells = this.columns.map((name, i) => this.title(name, i, isSorted && i === column ? (down ? "descending" : "ascending") : null));
    if (this.times) cells.push(el("th", { scope: "col", class: "number" }, "times"));
    this.head.replaceChildren(...cells);
    this.head.children[focused]?.querySelector("button")?.focus();
  }

  title(name, i, sort) {
    const type = this.types[name] ? el("span", { class: "type" }, this.types[name]) : null;
    const mark = el("span", { class: "sort", "aria-hidden": "true" }, { ascending: "▲", descending: "▼" }[sort] ?? "");
    const label = `Sort by ${name}`;
    return el("th", { scope: "col", class: this.kinds[i] ? "number" : "", "aria-sort": sort }, el("button", { type: "button", class: "sorter", title: label, click: () => this.sort(i) }, name, " ", type, mark));
  }

  sort(column) {
    const { column: last, down, chosen } = this.sorted;
    this.sorted = { column, down: last === column && (chosen || !this.ordered) ? !down : false, chosen: true };
    this.at = 0;
    this.draw();
  }

  turn(step) {
    this.at += step;
    this.draw();
  }

  /** Puts rows in their places; those that are there already are not touched, so that they go on flashing. */
  place(rows) {
    const wanted = rows.map((each) => this.line(each));
    const kept = new Set(wanted);
    for (const [key, { node }] of this.shown) {
      if (kept.has(node)) continue;
      node.remove();
      this.shown.delete(key);
    }
    let next = this.body.firstChild;
    for (const node of wanted) {
      if (node === next) next = next.nextSibling;
      else this.body.insertBefore(node, next);
    }
  }

  line(each) {
    const key = each.key ?? JSON.stringify(each.row);
    let known = this.shown.get(key);
    if (!known) {
      const cells = each.row.map((value, i) => el("td", { class: `${this.kinds[i] ? "number" : ""} ${value === null ? "null" : ""}`.trim() || null }, shownValue(value)));
      const times = this.times ? el("td", { class: "number" }) : null;
      known = { node: el("tr", {}, ...cells, times), times, at: -Infinity };
      this.shown.set(key, known);
    }
    if (known.times) setText(known.times, count(each.n));
    if (each.at > known.at && performance.now() - each.at < FLASH) flash(known.node);
    known.at = Math.max(known.at, each.at ?? -Infinity);
    return known.node;
  }
}

function flash(node) {
  node.classList.remove("changed");
  requestAnimationFrame(() => node.classList.add("changed"));
  setTimeout(() => node.classList.remove("changed"), FLASH);
}

/** "8 rows", or "12 rows, 8 of them distinct". */
export function rowsSaid(total, distinct) {
  return total === distinct ? many(total, "row") : `${many(total, "row")}, ${count(distinct)} of them distinct`;
}
