"""What a short list of rows costs: inserted and deleted as tuples, against the same rows as an Arrow table.

    python -m benchmarks.short_lists

CPU time of the thread, so that other processes hardly count. Both ways leave the same rows; the view is verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from ivme.database import Database

VIEW = "SELECT R.b, COUNT(*) AS n, SUM(R.a) AS total FROM R JOIN S ON R.b = S.b WHERE R.s <> 'x' GROUP BY R.b"
LENGTHS = (1, 2, 10, 30, 64, 65, 200, 1000)
ROWS = 20_000


def tables() -> Database:
    database = Database()
    database.create_table("R", {"a": "int", "b": "int", "s": "string"})
    database.create_table("S", {"b": "int", "c": "string"})
    database.create_view("v", VIEW)
    database.insert("S", [(number, "q") for number in range(10)])
    return database


def each(work: Callable[[object], None], given: list[object]) -> float:
    """The microseconds of one piece of work; the first three are not counted."""
    for one in given[:3]:
        work(one)
    start = time.thread_time()
    for one in given[3:]:
        work(one)
    return (time.thread_time() - start) / (len(given) - 3) * 1e6


def main() -> None:
    """Prints the microseconds a list and a row for each length."""
    print(f"{'rows':>6}{'insert':>10}{'a row':>8}{'delete':>10}{'a row':>8}{'Arrow':>10}{'a row':>8}   (microseconds)")
    for length in LENGTHS:
        starts = range(0, length * max(20, ROWS // length), length)
        lists = [[(start + i, i % 10, f"s{i}") for i in range(length)] for start in starts]
        database, other = tables(), tables()
        inserted = each(partial(database.insert, "R"), [*lists])
        arrow: list[object] = [pa.Table.from_pylist([dict(zip("abs", r, strict=True)) for r in rows]) for rows in lists]
        batched = each(partial(other.insert, "R"), arrow)
        assert sorted(database.view("v")) == sorted(other.view("v"))
        deleted = each(partial(database.delete, "R"), [*lists])
        assert not list(database.table("R"))
        database.view("v").verify()
        figures = "".join(f"{t:10.1f}{t / length:8.2f}" for t in (inserted, deleted, batched))
        print(f"{length:6}{figures}")


if __name__ == "__main__":
    main()
