// Explains a query while it is being typed.

import { ask } from "./api.js";
import { card, el, setText } from "./dom.js";
import { summary } from "./summary.js";
import { fraction, tradeoffPicture } from "./tradeoff.js";
import { Trees } from "./tree.js";

const PAUSE = 250;
const STRATEGIES = ["view-tree", "skew", "marks", "classical", "recursive", "factorised", "request", "recompute"];

/** The screen with the box; what was typed is kept while the page is open. */
export class Explaining {
  constructor() {
    this.text = el("textarea", { id: "query", rows: 6, spellcheck: "false", autocomplete: "off", "aria-describedby": "query-hint", input: () => this.soon() });
    this.strategy = el("select", { id: "strategy", change: () => this.now() }, el("option", { value: "" }, "the best"), ...STRATEGIES.map((name) => el("option", {}, name)));
    this.epsilon = el("input", { id: "epsilon", type: "number", min: 0, max: 1, step: "any", placeholder: "by itself", input: () => this.soon() });
    this.message = el("p", { class: "message", role: "status" });
    this.wrong = el("pre", { class: "wrong", role: "alert", hidden: true });
    this.answer = el("div", { class: "column" });
    this.title = el("h1", { tabindex: -1 }, "Explain a query");
    this.node = el("div", {}, el("div", { class: "card head" }, this.title, ...this.box()), this.answer);
    this.width = 600;
  }

  /** Its node, for a screen of some width. */
  open(width) {
    this.width = width;
    return { node: this.node, stop: () => {}, first: this.text };
  }

  box() {
    const hint = "SQL or a rule over the tables and views here, such as SELECT … WHERE column = :parameter, or Q(B | A) = R(A, B).";
    return [
      el("label", { for: "query" }, "Query"),
      this.text,
      el("p", { class: "quiet", id: "query-hint" }, hint),
      el("div", { class: "actions" }, el("label", { class: "inline", for: "strategy" }, "strategy", this.strategy), el("label", { class: "inline", for: "epsilon" }, "ε", this.epsilon)),
      this.message,
      this.wrong,
    ];
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE);
  }

  async now() {
    clearTimeout(this.timer);
    this.asked?.abort();
    const query = this.text.value.trim();
    if (!query) {
      this.tell("", "");
      this.answer.replaceChildren();
      return;
    }
    const asked = (this.asked = new AbortController());
    setText(this.message, "…");
    try {
      const found = await ask("explain", { body: { query, options: this.options() }, signal: asked.signal });
      this.tell("Nothing was made: this is what a view of it would be.", "");
      this.show(found);
    } catch (error) {
      if (error.name === "AbortError" || asked !== this.asked) return;
      this.tell("", error.message);
      this.answer.classList.add("stale");
    }
  }

  options() {
    const options = {};
    if (this.strategy.value) options.strategy = this.strategy.value;
    if (this.epsilon.value) options.epsilon = Number(this.epsilon.value);
    return options;
  }

  tell(message, wrong) {
    setText(this.message, message);
    setText(this.wrong, wrong);
    this.wrong.hidden = !wrong;
  }

  show(found) {
    this.answer.classList.remove("stale");
    const epsilon = typeof found.epsilon === "string" ? fraction(found.epsilon) : null;
    const curve = tradeoffPicture(found, epsilon);
    const trees = found.maps.length ? new Trees(found, this.width) : null;
    trees?.expect(found.maps);
    this.answer.replaceChildren(
      card("Guarantee", {}, summary(found)),
      el(
        "div",
        { class: "columns" },
        trees === null ? null : el("div", { class: "column" }, card("What would be stored", { class: "kept" }, trees.node)),
        curve === null ? null : el("div", { class: "column" }, card("Updates against reads", { class: "trade" }, curve)),
      ),
    );
  }
}
