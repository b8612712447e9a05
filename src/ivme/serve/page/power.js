// Bounds as they are written by hand: O(N^(1-ε)) with a raised exponent.

import { el } from "./dom.js";

/** Where the exponent that starts at a place ends: a number, or a name or nothing with its parentheses. */
function endOf(text, start) {
  const word = /[\w/.ε]*/uy;
  word.lastIndex = start;
  let at = start + word.exec(text)[0].length;
  if (text[at] !== "(") return at;
  for (let depth = 0; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")" && (depth -= 1) === 0) return at + 1;
  }
  return at;
}

/** A text with the exponents behind each ^ raised. */
export function raised(text) {
  const parts = [];
  let from = 0;
  for (let at = text.indexOf("^"); at >= 0; at = text.indexOf("^", from)) {
    const end = endOf(text, at + 1);
    const exponent = text.slice(at + 1, end);
    const bare = /^\(.*\)$/.test(exponent) ? exponent.slice(1, -1) : exponent;
    parts.push(text.slice(from, at), el("span", { class: "hidden" }, "^"), el("sup", {}, bare));
    from = end;
  }
  return [...parts, text.slice(from)];
}
