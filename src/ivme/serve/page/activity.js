// What happens now: updates, the latency of batches, access requests and theirs.

import { ask } from "./api.js";
import { byId } from "./dom.js";
import { short, time } from "./format.js";
import { Plot } from "./plot.js";
import { every } from "./polling.js";

export function setUpActivity() {
  const latency = [{ name: "median", kind: "median" }, { name: "p99", kind: "p99" }];
  const updates = new Plot("Updates", [{ name: "rows", kind: "updates" }], short, "rows/s");
  const batches = new Plot("Batch latency", latency, time, "median", true);
  const requests = new Plot("Access requests", [{ name: "requests", kind: "requests" }], short, "/s");
  const answers = new Plot("Request latency", latency, time, "median", true);
  byId("activity").append(updates.node, batches.node, requests.node, answers.node);
  return every(1, async () => {
    const seen = await ask("activity").catch(() => null);
    if (seen === null) return;
    updates.show([seen.rows]);
    batches.show([seen.batch_median, seen.batch_p99]);
    requests.show([seen.requests]);
    answers.show([seen.request_median, seen.request_p99]);
  });
}
