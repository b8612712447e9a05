// What the server answers to, from its own description: each request with fields for what it takes, and a button that sends it.

import { ask } from "./api.js";
import { el, setText } from "./dom.js";

const METHODS = ["get", "post", "delete"];

/** The screen; the description is asked for once. */
export function docsScreen() {
  const title = el("h1", { tabindex: -1 }, "HTTP");
  const list = el("div", { class: "column" }, el("p", { role: "status" }, "…"));
  read(list);
  const hint = el("p", { class: "quiet" }, "All requests of this server, as ", el("code", {}, "openapi.json"), " describes them. Sending one is real: a POST changes what it says.");
  return { node: el("div", {}, el("div", { class: "title" }, title), hint, list), stop: () => {}, first: title };
}

async function read(list) {
  try {
    const { paths } = await ask("openapi.json");
    const all = Object.entries(paths).flatMap(([path, methods]) => METHODS.filter((method) => method in methods).map((method) => request(method, path, methods[method])));
    list.replaceChildren(...all);
  } catch (error) {
    list.replaceChildren(el("p", { class: "wrong", role: "alert" }, error.message));
  }
}

/** One request, closed until it is looked at. */
function request(method, path, { summary = "", description = "", parameters = [], requestBody = null }) {
  const id = `${method} ${path}`.replace(/[^a-z0-9]+/gi, "-");
  const fields = parameters.map((each) => field(`${id}-${each.name}`, each));
  const body = requestBody === null ? null : el("textarea", { id: `${id}-body`, rows: 4, spellcheck: "false", autocomplete: "off" }, example(requestBody));
  const answer = el("pre", { class: "query", role: "status", hidden: true });
  const submit = (event) => {
    event.preventDefault();
    send(answer, method, path, fields, body);
  };
  const given = [...fields.map((each) => each.node), body && el("div", { class: "field" }, el("label", { for: body.id }, "body"), body), el("button", { type: "submit" }, "Send")];
  return el("details", { class: "card request" }, el("summary", {}, el("b", {}, method.toUpperCase()), ` ${path} `, el("span", { class: "quiet" }, summary)), description ? el("p", {}, description) : null, el("form", { submit }, el("div", { class: "fields" }, ...given)), answer);
}

function field(id, { name, in: where, required = false, schema = {} }) {
  const input = el("input", { id, type: "text", autocomplete: "off", spellcheck: "false", required, placeholder: schema.format ?? schema.type ?? null });
  return { name, where, input, node: el("div", { class: "field" }, el("label", { for: id }, name), input) };
}

/** A body to begin with: the names that the description has. */
function example({ content }) {
  const { properties = {} } = content["application/json"]?.schema ?? {};
  const made = { string: "", array: [], object: {}, integer: 0 };
  return JSON.stringify(Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, made[type] ?? null])));
}

async function send(answer, method, path, fields, body) {
  const given = fields.filter((each) => each.input.value !== "");
  const place = given.filter((each) => each.where === "path").reduce((text, each) => text.replace(`{${each.name}}`, encodeURIComponent(each.input.value)), path);
  const query = new URLSearchParams(given.filter((each) => each.where === "query").map((each) => [each.name, each.input.value])).toString();
  answer.hidden = false;
  answer.classList.remove("wrong");
  setText(answer, "…");
  try {
    const found = await ask((query ? `${place}?${query}` : place).slice(1), { method: method.toUpperCase(), body: body && JSON.parse(body.value) });
    setText(answer, JSON.stringify(found, null, 1).slice(0, 20000));
  } catch (error) {
    answer.classList.add("wrong");
    setText(answer, error.message);
  }
}
