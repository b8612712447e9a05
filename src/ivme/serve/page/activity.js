// What happens now: updates, the latency of batches, access requests and theirs.

import { ask } from "./api.js";
import { el } from "./dom.js";
import { short, time } from "./format.js";
import { Plot } from "./plot.js";
import { every } from "./polling.js";

/** The screen; `stop` ends what it asks for. */
export function activityScreen() {
  const latency = [{ name: "median", kind: "median" }, { name: "p99", kind: "p99" }];
  const updates = new Plot("Updates", [{ name: "rows", kind: "updates" }], short, "rows/s");
  const batches = new Plot("Batch latency", latency, time, "median", true);
  const requests = new Plot("Access requests", [{ name: "requests", kind: "requests" }], short, "/s");
  const answers = new Plot("Request latency", latency, time, "median", true);
  const title = el("h1", { tabindex: -1 }, "Activity");
  const tiles = el("section", { class: "activity", "aria-label": "The last two minutes" }, updates.node, batches.node, requests.node, answers.node);
  const node = el("div", {}, el("div", { class: "title" }, title), tiles);
  const stop = every(1, async () => {
    const seen = await ask("activity").catch(() => null);
    if (seen === null) return;
    updates.show([seen.rows]);
    batches.show([seen.batch_median, seen.batch_p99]);
    requests.show([seen.requests]);
    answers.show([seen.request_median, seen.request_p99]);
  });
  return { node, stop, first: title };
}
