// The statements of this tab, newest first.

import { el } from "./dom.js";

const KEY = "ivme-statements";
const MOST = 50;

/** A list to choose an earlier statement from; `choose` gets its text. */
export class Statements {
  constructor(choose) {
    this.choose = choose;
    this.list = el("ul", { class: "statements" });
    this.node = el("details", { class: "history" }, el("summary", {}, "Statements of this session"), this.list);
    this.draw();
  }

  all() {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
  }

  add(text, told) {
    const others = this.all().filter((each) => each.text !== text);
    sessionStorage.setItem(KEY, JSON.stringify([{ text, told }, ...others].slice(0, MOST)));
    this.draw();
  }

  draw() {
    const found = this.all();
    this.node.hidden = found.length === 0;
    this.list.replaceChildren(...found.map(({ text, told }) => el("li", {}, el("button", { type: "button", click: () => this.choose(text) }, text), el("span", { class: "quiet" }, told))));
  }
}
