// Fields for the parameters of a statement, such as :city.

import { el } from "./dom.js";

const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;
const PICKED = { date: "date", timestamp: "datetime-local" };
const PARAMETER = /(?<![:\w]):([a-z_]\w*)/gi;

export class Given {
  constructor() {
    this.node = el("div", { class: "fields" });
    this.fields = new Map();
  }

  /** Shows a field for each parameter of a text; those that were there keep their values. */
  find(text) {
    const names = [...new Set([...text.replace(QUOTED, " ").matchAll(PARAMETER)].map((match) => match[1]))];
    if (names.join() === [...this.fields.keys()].join()) return;
    const last = this.fields;
    this.fields = new Map(names.map((name) => [name, last.get(name) ?? this.field(name)]));
    this.node.replaceChildren(...[...this.fields.values()].map((each) => each.node));
  }

  field(name) {
    const input = el("input", { id: `given-${name}`, type: "text", autocomplete: "off", spellcheck: "false" });
    return { input, type: null, node: el("div", { class: "field" }, el("label", { for: `given-${name}` }, `:${name}`), input) };
  }

  /** Dates and times are picked, once it is known which parameters are such. */
  typed(types) {
    for (const [name, each] of this.fields) {
      const kind = PICKED[types[name]];
      each.type = kind === undefined ? null : types[name];
      if (each.input.type !== (kind ?? "text")) each.input.type = kind ?? "text";
      if (kind) each.input.step = "any";
    }
  }

  /** Values as JSON has them: numbers, true, false, null, and texts, which may have quotes; dates with their type. */
  values() {
    const value = ({ input, type }) => (type && input.value ? { type, value: input.value } : read(input.value.trim()));
    return Object.fromEntries([...this.fields].map(([name, each]) => [name, value(each)]));
  }
}

function read(text) {
  if (/^(-?\d{1,15}(\.\d+)?|true|false|null)$/.test(text)) return JSON.parse(text);
  const quoted = /^'(.*)'$/.exec(text);
  return quoted === null ? text : quoted[1];
}
