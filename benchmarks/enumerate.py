"""Reading a whole view into Arrow.

python -m benchmarks.enumerate [--rows 1000000] [--runs 3] [--cpu]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, median, parse, seconds, show
from ivme.database import Database
from ivme.view import View

VIEWS = {
    "join of two tables": "SELECT R.a, R.b, S.c FROM R JOIN S ON R.a = S.a",
    "groups with their counts": "SELECT R.a, COUNT(*) AS n FROM R JOIN S ON R.a = S.a GROUP BY R.a",
    "groups with their sums": "SELECT R.a, SUM(R.b) AS n FROM R JOIN S ON R.a = S.a GROUP BY R.a",
    "one table, with a string": "SELECT R.a, R.s FROM R",
}


def instance(query: str, rows: int) -> tuple[View, dict[str, pa.Table]]:
    rng = np.random.default_rng(1)
    words = np.array([f"word {i}" for i in range(1000)])
    r = {"a": rng.integers(0, rows, rows), "b": np.arange(rows), "s": words[rng.integers(0, 1000, rows)]}
    tables = {"R": pa.table(r), "S": pa.table({"a": rng.integers(0, rows, rows), "c": np.arange(rows)})}
    database = Database()
    database.create_table("R", {"a": "int", "b": "int", "s": "string"})
    database.create_table("S", {"a": "int", "c": "int"})
    for name, table in tables.items():
        database.insert(name, table)
    return database.create_view("v", query), tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parse(parser)
    for name, query in VIEWS.items():
        small, tables = instance(query, 2000)
        check_rows(small.to_arrow(), query, tables)
        view, _ = instance(query, options.rows)
        rows = view.to_arrow().num_rows
        show(name, rows / median(partial(seconds, view.to_arrow), options.runs), "rows/s", "5,000,000")


if __name__ == "__main__":
    main()
