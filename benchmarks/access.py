"""Access requests: one by one from Python, and many in a batch.

    python -m benchmarks.access [--rows 1000000] [--large 0] [--runs 3] [--cpu]

The view lists the pairs of a join for one key. Operations per row read must be the same at every size; the time per
row is printed for a tenth of the rows, for all of them, and with `--large` for that many.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows, median, parse, seconds, show
from ivme.database import Database
from ivme.view import View

QUERY = "Q(b, c | a) = R(a, b), S(a, c)"
MATCHES = 2


@dataclass(frozen=True, slots=True)
class Instance:
    """A database in which each key has two rows in R and one in S."""

    database: Database
    view: View
    tables: dict[str, pa.Table]
    keys: int


def made(rows: int) -> dict[str, pa.Table]:
    """R and S, which have as many rows and half as many."""
    rng = np.random.default_rng(3)
    keys = rows // MATCHES
    r = pa.table({"a": rng.permutation(np.repeat(np.arange(keys), MATCHES)), "b": np.arange(rows)})
    return {"R": r, "S": pa.table({"a": rng.permutation(keys), "c": np.arange(keys)})}


def instance(rows: int) -> Instance:
    tables = made(rows)
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    database.create_table("S", {"a": "int", "c": "int"})
    view = database.create_view("v", QUERY)
    for name, table in tables.items():
        database.insert(name, table)
    return Instance(database, view, tables, rows // MATCHES)


def check(rows: int = 2000) -> None:
    """The answers for all keys are DuckDB's, one by one and in a batch."""
    small = instance(rows)
    query = "SELECT R.a, R.b, S.c FROM R JOIN S ON R.a = S.a"
    check_rows(small.view.request_many(a=np.arange(small.keys)), query, small.tables)
    single = [(a, *row) for a in range(small.keys) for row in small.view(a=a)]
    columns = [pa.array(column) for column in zip(*single, strict=True)]
    check_rows(pa.table(columns, names=["a", "b", "c"]), query, small.tables)


def one_by_one(made: Instance, requests: int) -> float:
    """Requests a second, each from Python with its rows in a list."""
    view = made.view
    asked = np.random.default_rng(5).integers(0, made.keys, requests).tolist()

    def work() -> None:
        for a in asked:
            list(view(a=a))

    return requests / seconds(work)


def in_a_batch(made: Instance, requests: int) -> float:
    """Requests a second, all in one call that returns an Arrow table."""
    asked = np.random.default_rng(6).integers(0, made.keys, requests)
    return requests / seconds(lambda: made.view.request_many(a=asked))


def operations_per_row(made: Instance, requests: int = 1000) -> float:
    asked = np.random.default_rng(7).integers(0, made.keys, requests)
    before = made.view.stats()["operations"]
    rows = made.view.request_many(a=asked).num_rows
    return float((made.view.stats()["operations"] - before) / rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=0)
    options = parse(parser)
    check()
    counted = set()
    for rows in filter(None, (options.rows // 10, options.rows, options.large)):
        loaded = instance(rows)
        one = median(partial(one_by_one, loaded, 200_000), options.runs)
        many = median(partial(in_a_batch, loaded, 200_000), options.runs)
        show(f"requests one by one, {rows:,} rows", one, "requests/s", "150,000")
        show(f"requests in a batch, {rows:,} rows", many, "requests/s", "1,000,000")
        show("  time for a row in a batch", 1e9 / many / MATCHES, "ns")
        show("  operations for a row", operations_per_row(loaded), "")
        counted.add(operations_per_row(loaded))
    if len(counted) != 1:
        raise AssertionError(f"operations for a row grow with the data: {sorted(counted)}")


if __name__ == "__main__":
    main()
