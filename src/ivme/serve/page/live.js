// The rows of a view as they are now: a snapshot, and then every change of it. Where changes cannot be followed, or
// following would make the view dearer, the rows are asked for again and again.

import { ask, listen, pathTo } from "./api.js";
import { every } from "./polling.js";

const MOST = 5000;
const PAUSE = 2000;

/** Rows by their text, with their multiplicities and the time of their last change; `changed` is called for news. */
export class LiveRows {
  constructor(view, changed) {
    this.view = view;
    this.changed = changed;
    this.isFollowed = view.strategy !== "request";
    this.stop = () => {};
    this.clear();
  }

  clear() {
    this.rows = new Map();
    this.total = 0;
    this.whole = true;
    this.state = "waiting";
    this.error = "";
  }

  /** Starts anew with values for the parameters, as pairs of names and texts. */
  start(parameters) {
    this.stop();
    this.clear();
    this.stop = this.isFollowed ? this.follow(parameters) : this.poll(parameters);
  }

  follow(parameters) {
    const path = pathTo(["views", this.view.name, "changes"], [...parameters, ["_limit", MOST]]);
    let ending = null;
    let timer = null;
    let isOver = false;
    const run = async () => {
      this.state = "waiting";
      const mine = (ending = new AbortController());
      const again = await listen(path, mine.signal, (event, content) => this.hear(event, content)).then(() => true, (error) => this.fail(error, parameters));
      if (again && !isOver && ending === mine) timer = setTimeout(run, PAUSE);
    };
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) ending?.abort();
      else if (!isOver) run();
    };
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
      isOver = true;
      clearTimeout(timer);
      ending?.abort();
      document.removeEventListener("visibilitychange", look);
    };
  }

  /** Says what went wrong; whether it is worth trying again. */
  fail(error, parameters) {
    if (error.name === "AbortError") return false;
    if (error.status === 422 && error.message.includes("cannot be followed")) {
      this.isFollowed = false;
      this.start(parameters);
      return false;
    }
    this.state = "wrong";
    this.error = error.message || "the connection was lost";
    this.changed();
    return !(error.status >= 400);
  }

  hear(event, content) {
    if (event === "snapshot") this.take(content);
    else if (event === "change") this.apply(content.changes);
    else if (event === "end") this.error = content.error;
    this.changed();
  }

  take({ rows, more, total, whole }) {
    if (this.state !== "filling") this.clear();
    this.state = more ? "filling" : "live";
    for (const [row, n] of rows) this.rows.set(JSON.stringify(row), { row, n, at: -Infinity });
    if (!more) Object.assign(this, { total, whole });
  }

  apply(changes) {
    const at = performance.now();
    for (const [row, weight] of changes) {
      const key = JSON.stringify(row);
      const known = this.rows.get(key);
      const n = (known?.n ?? 0) + weight;
      this.total += weight;
      if (n > 0) this.rows.set(key, { row, n, at });
      else this.rows.delete(key);
    }
    for (const key of this.rows.keys()) {
      if (this.rows.size <= 2 * MOST) break;
      this.rows.delete(key);
      this.whole = false;
    }
  }

  poll(parameters) {
    const path = pathTo(["views", this.view.name], [...parameters, ["_limit", MOST]]);
    return every(1, async () => {
      const begun = performance.now();
      try {
        this.compare(await ask(path));
      } catch (error) {
        this.state = "wrong";
        this.error = error.message;
      }
      this.changed();
      return Math.max(1, (10 * (performance.now() - begun)) / 1000);
    });
  }

  /** Takes the rows of an answer; those that were not in the last one have changed. */
  compare(page) {
    const last = this.state === "live" ? this.rows : null;
    const at = performance.now();
    this.rows = new Map();
    for (const row of page.rows) {
      const key = JSON.stringify(row);
      const before = last?.get(key);
      const known = this.rows.get(key);
      if (known) known.n += 1;
      else this.rows.set(key, { row, n: 1, at: before?.at ?? (last ? at : -Infinity) });
    }
    Object.assign(this, { state: "live", error: "", total: page.rows.length, whole: page.next === null });
  }
}
