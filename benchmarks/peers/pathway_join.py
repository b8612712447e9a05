"""The join count in Pathway: run by `benchmarks.join_count` with a Python that has Pathway installed.

    PYTHON pathway_join.py FILE BATCH PLAN

FILE is a NumPy archive with the columns `ra`, `rb`, `sa`, `sc` of two tables, which come in batches of BATCH rows in
turn. PLAN is "rows" (join, then count) or "counts" (count each side by key, join, and sum the products). Prints the
seconds of the run, on the wall and of the CPU, and the last count as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pathway as pw


def stream(key: Any, name: str, value: Any, size: int, turn: int) -> pw.Table:
    frame = pd.DataFrame({"a": key, name: value})
    frame["__time__"] = 2 * (2 * (np.arange(len(frame)) // size) + turn)
    frame["__diff__"] = 1
    return pw.debug.table_from_pandas(frame)


def joined(r: pw.Table, s: pw.Table, plan: str) -> pw.Table:
    if plan == "rows":
        return r.join(s, pw.left.a == pw.right.a).select(pw.left.b).reduce(n=pw.reducers.count())
    left, right = (side.groupby(side.a).reduce(side.a, m=pw.reducers.count()) for side in (r, s))
    products = left.join(right, pw.left.a == pw.right.a).select(m=pw.left.m * pw.right.m)
    return products.reduce(n=pw.reducers.sum(pw.this.m))


def main(path: str, size: int, plan: str) -> None:
    data = np.load(path)
    r, s = stream(data["ra"], "b", data["rb"], size, 1), stream(data["sa"], "c", data["sc"], size, 2)
    last: dict[str, int] = {}

    def seen(**change: Any) -> None:
        if change["is_addition"]:
            last.update(change["row"])

    pw.io.subscribe(joined(r, s, plan), on_change=seen)
    wall, cpu = time.perf_counter(), time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, **last}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
