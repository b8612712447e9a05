// A field for each type of a parameter; what it gives is the text that the server reads.

import { el } from "./dom.js";

const KINDS = {
  int: { type: "text", inputmode: "numeric", pattern: "-?[0-9]+", title: "a whole number such as 17" },
  float: { type: "text", inputmode: "decimal", title: "a number such as 0.5" },
  decimal: { type: "text", inputmode: "decimal", pattern: "-?[0-9]*\\.?[0-9]+", title: "a number such as 12.50" },
  date: { type: "date" },
  timestamp: { type: "datetime-local", step: "any" },
  binary: { type: "text", title: "bytes in base64" },
};
const LIST = { type: "text", title: "values with commas between them" };

/** A labelled field for a parameter; one for a list takes values with commas between them. */
export function field(name, type, { isList = false, given = null } = {}) {
  const id = `p-${name}`;
  const shared = { id, name, autocomplete: "off" };
  const base = type.replace(/\(.*/, "");
  const input =
    base === "bool" && !isList
      ? el("select", shared, el("option", { value: "true" }, "true"), el("option", { value: "false", selected: given === false }, "false"))
      : el("input", { ...shared, spellcheck: "false", required: base !== "string", value: given, ...(isList ? LIST : (KINDS[base] ?? { type: "text" })) });
  return el("div", { class: "field" }, el("label", { for: id }, name, " ", el("span", { class: "type" }, isList ? `${type}, …` : type)), input);
}
