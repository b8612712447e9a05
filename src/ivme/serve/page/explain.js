// What a query would cost as a view, while it is being typed; and makes the view.

import { ask } from "./api.js";
import { card, el, setText } from "./dom.js";
import { summary } from "./summary.js";
import { fraction, tradeoffPicture } from "./tradeoff.js";
import { Trees } from "./tree.js";

const PAUSE = 250;
const STRATEGIES = ["view-tree", "skew", "marks", "classical", "recursive", "factorised", "request", "recompute"];
const STATEMENT = /^\s*(create|drop|alter|insert|update|delete|merge|truncate|copy|begin|commit|rollback|show|describe|explain)\b/i;
const HINT = "A SELECT, or a rule such as Q(B | A) = R(A, B), can be made a view: it then stays up to date.";

/** The card beside the editor; `made` is called with the name of a view that was made, `typed` with the types of parameters. */
export class AsView {
  constructor(made, typed) {
    this.made = made;
    this.tellTypes = typed;
    this.query = "";
    this.strategy = el("select", { id: "strategy", change: () => this.now() }, el("option", { value: "" }, "automatic"), ...STRATEGIES.map((name) => el("option", {}, name)));
    this.epsilon = el("input", { id: "epsilon", type: "number", min: 0, max: 1, step: "any", placeholder: "automatic", input: () => this.soon() });
    this.name = el("input", { id: "view-name", type: "text", autocomplete: "off", spellcheck: "false", required: true });
    this.button = el("button", { type: "submit", disabled: true }, "Make it a view");
    this.cost = el("p", { class: "cost", role: "status" }, HINT);
    this.wrong = el("pre", { class: "wrong", role: "alert", hidden: true });
    this.theory = el("div", { class: "column why-body" });
    this.why = el("details", { class: "card why", hidden: true }, el("summary", {}, "Why this cost"), this.theory);
    this.node = card("As a view", { class: "as-view" }, this.cost, this.wrong, this.form());
    this.width = 600;
  }

  form() {
    const submit = (event) => {
      event.preventDefault();
      this.make();
    };
    const options = el("div", { class: "actions" }, el("label", { class: "inline", for: "strategy" }, "strategy", this.strategy), el("label", { class: "inline", for: "epsilon" }, "ε", this.epsilon));
    return el("form", { submit }, el("div", { class: "fields" }, el("div", { class: "field" }, el("label", { for: "view-name" }, "Name"), this.name), this.button), options);
  }

  /** The text of the editor is another one. */
  typed(text) {
    this.query = text.trim().replace(/;\s*$/, "");
    this.soon();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), PAUSE);
  }

  async now() {
    clearTimeout(this.timer);
    this.asked?.abort();
    const query = this.query;
    if (!query || STATEMENT.test(query)) return this.tell(HINT, "", null);
    const asked = (this.asked = new AbortController());
    try {
      const found = await ask("explain", { body: { query, options: this.options() }, signal: asked.signal });
      this.tell(found.cost || "Nothing is promised about its cost.", "", found);
      this.tellTypes(found.parameters);
    } catch (error) {
      if (error.name === "AbortError" || asked !== this.asked) return;
      this.tell("", error.message, null);
    }
  }

  options() {
    const options = {};
    if (this.strategy.value) options.strategy = this.strategy.value;
    if (this.epsilon.value) options.epsilon = Number(this.epsilon.value);
    return options;
  }

  tell(cost, wrong, found) {
    setText(this.cost, cost);
    setText(this.wrong, wrong);
    this.wrong.hidden = !wrong;
    this.button.disabled = found === null;
    this.why.hidden = found === null;
    if (found !== null) this.show(found);
    else this.theory.replaceChildren();
  }

  show(found) {
    const epsilon = typeof found.epsilon === "string" ? fraction(found.epsilon) : null;
    const curve = tradeoffPicture(found, epsilon);
    const trees = found.maps.length ? new Trees(found, this.width) : null;
    trees?.expect(found.maps);
    this.theory.replaceChildren(
      summary(found),
      el(
        "div",
        { class: "columns" },
        trees === null ? null : el("div", { class: "column" }, card("What would be stored", { class: "kept" }, trees.node)),
        curve === null ? null : el("div", { class: "column" }, card("Updates against reads", { class: "trade" }, curve)),
      ),
    );
  }

  async make() {
    const name = this.name.value.trim();
    this.button.disabled = true;
    try {
      await ask("views", { body: { name, query: this.query, options: this.options() } });
      this.name.value = "";
      await this.made(name);
    } catch (error) {
      setText(this.wrong, error.message);
      this.wrong.hidden = false;
    }
    this.button.disabled = false;
  }
}
