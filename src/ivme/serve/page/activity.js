// What happens: tables, views and subscribers with their rates, and figures of the last two minutes or the last hour.

import { ask } from "./api.js";
import { card, el } from "./dom.js";
import { Flow } from "./flow.js";
import { bytes, short, time } from "./format.js";
import { Plot } from "./plot.js";
import { every } from "./polling.js";

const SPANS = [["minutes", "the last two minutes"], ["hour", "the last hour"]];

/** The screen; `stop` ends what it asks for. */
export function activityScreen() {
  const tiles = new Tiles();
  const flow = new Flow();
  const title = el("h1", { tabindex: -1 }, "Activity");
  const span = el("select", { id: "span", change: () => tiles.read(span.value) }, ...SPANS.map(([value, text]) => el("option", { value }, text)));
  const node = el("div", {}, el("div", { class: "title" }, title, el("label", { class: "inline", for: "span" }, "show", span)), tiles.node, card("Tables, views, subscribers", { class: "flow-card" }, flow.node));
  const stops = [every(1, () => tiles.read(span.value)), every(2, () => flow.read())];
  return { node, stop: () => stops.forEach((stop) => stop()), first: title };
}

class Tiles {
  constructor() {
    const latency = [{ name: "median", kind: "median" }, { name: "p99", kind: "p99" }];
    this.updates = new Plot("Updates", [{ name: "rows", kind: "updates" }], short, "rows/s");
    this.batches = new Plot("Batch latency", latency, time, "median", true);
    this.requests = new Plot("Access requests", [{ name: "requests", kind: "requests" }], short, "requests/s");
    this.answers = new Plot("Request latency", latency, time, "median", true);
    this.memory = new Plot("Memory", [{ name: "memory", kind: "memory" }], bytes);
    this.refused = new Plot("Errors", [{ name: "errors", kind: "errors" }], short, "refused requests/s");
    const plots = [this.updates, this.batches, this.requests, this.answers, this.memory, this.refused];
    this.node = el("section", { class: "activity", "aria-label": "Figures" }, ...plots.map((plot) => plot.node));
  }

  async read(span) {
    const seen = await ask(`activity?_span=${span}`).catch(() => null);
    if (seen === null) return;
    const over = SPANS.find(([value]) => value === span)[1];
    const rate = (counts) => counts.map((number) => number / seen.step);
    this.updates.show([rate(seen.rows)], over);
    this.batches.show([seen.batch_median, seen.batch_p99], over);
    this.requests.show([rate(seen.requests)], over);
    this.answers.show([seen.request_median, seen.request_p99], over);
    this.memory.show([seen.memory], over);
    this.refused.show([rate(seen.refused)], over);
  }
}
