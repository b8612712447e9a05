"""The triangle count in Pathway: run by `benchmarks.triangles` with a Python that has Pathway installed.

    PYTHON pathway_triangles.py FILE BATCH

FILE is a NumPy archive with the columns `a` and `b` of distinct edges and the `weight` of each change, 1 or -1, which
come in batches of BATCH. Prints the seconds of the run, on the wall and of the CPU, and the counts as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pathway as pw


def triangles(edges: pw.Table) -> pw.Table:
    second, third = edges.copy(), edges.copy()
    paths = edges.join(second, pw.left.b == pw.right.a).select(a=pw.left.a, c=pw.right.b)
    closed = paths.join(third, pw.left.c == pw.right.a, pw.left.a == pw.right.b).select(pw.left.a)
    return closed.reduce(n=pw.reducers.count())


def main(path: str, size: int) -> None:
    data = np.load(path)
    frame = pd.DataFrame({"a": data["a"], "b": data["b"]})
    frame["__time__"] = 2 * (np.arange(len(frame)) // size + 1)
    frame["__diff__"] = data["weight"]
    edges = pw.debug.table_from_pandas(frame, id_from=["a", "b"])
    counts: dict[int, int] = {}

    def seen(**change: Any) -> None:
        if change["is_addition"]:
            counts[change["time"] // 2 - 1] = change["row"]["n"]

    pw.io.subscribe(triangles(edges), on_change=seen)
    wall, cpu = time.perf_counter(), time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**spent, "counts": {str(batch): n for batch, n in counts.items()}}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
