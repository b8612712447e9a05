"""Loading two tables under one join view, beside DuckDB loading them and running the join with its aggregate once.

    python -m benchmarks.bulk_load [--rows 1000000] [--runs 3] [--cpu]

Two ways: the view is there and the tables come in one batch each; or the tables are there and the view is made last.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, parse, seconds, show
from ivme.database import Database
from ivme.view import View

QUERY = "SELECT R.a, COUNT(*) AS n, SUM(S.c) AS total FROM R JOIN S ON R.a = S.a GROUP BY R.a"


def tables(rows: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(1)
    return {
        "R": pa.table({"a": rng.integers(0, rows // 5, rows), "b": rng.integers(0, rows, rows)}),
        "S": pa.table({"a": rng.integers(0, rows // 5, rows), "c": rng.integers(0, rows, rows)}),
    }


def view_first(data: dict[str, pa.Table]) -> View:
    database = declared()
    view = database.create_view("v", QUERY)
    for name, table in data.items():
        database.insert(name, table)
    return view


def view_last(data: dict[str, pa.Table]) -> View:
    database = declared()
    for name, table in data.items():
        database.insert(name, table)
    return database.create_view("v", QUERY)


def declared() -> Database:
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    database.create_table("S", {"a": "int", "c": "int"})
    return database


def in_duckdb(data: dict[str, pa.Table]) -> None:
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(f"given_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given_{name}")
    connection.sql(QUERY).to_arrow_table()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parse(parser)
    small = tables(2000)
    for build in (view_first, view_last):
        check_rows(build(small).to_arrow(), QUERY, small)
    data = tables(options.rows)
    ways = {"DuckDB": in_duckdb, "view first": view_first, "view last": view_last}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.runs):
        for name, load in ways.items():
            times[name].append(seconds(partial(load, data)))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in medians.items():
        show(f"{name}, 2 x {options.rows:,} rows", taken, "s")
    for name in ("view first", "view last"):
        show(f"  {name} / DuckDB", medians[name] / medians["DuckDB"], "times", "at most 1")


if __name__ == "__main__":
    main()
