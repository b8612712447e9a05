"""Single rows: how many inserts and deletes a second, each a transaction of its own.

    python -m benchmarks.single_rows [--sf 0.1] [--rows 20000] [--runs 3] [--cpu] [--only q3 q12] [--data DIRECTORY]

Integers: the count of a join of two tables, with and without a primary key. TPC-H: Q3, Q12 and Q18 over the columns
that they read, as TPC-H declares them (strings, decimals, dates and primary keys), loaded but for the last rows of the
stream, which come and go one by one. In each form: as tuples, dicts and dataclasses, and as tuples in a directory whose
log is written soon after (durability="async"). Q12 also with LEFT JOIN in place of the join, which is a union of two
parts. After the inserts, and after the deletes, the view is compared with DuckDB's answer.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import tpch_schema, tpch_stream
from benchmarks.measure import check_rows, now, parse, show
from ivme.database import Database

Row = tuple[Any, ...]
Columns = Mapping[str, str]
Change = tuple[str, list[Any]]

_READ = {
    "customer": (),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority", "o_totalprice", "o_orderpriority"),
    "lineitem": (
        *("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount", "l_returnflag", "l_shipdate"),
        *("l_linenumber", "l_quantity", "l_shipmode", "l_commitdate", "l_receiptdate"),
    ),
}
COLUMNS: Mapping[str, Columns] = {
    name: {column: tpch_schema.COLUMNS[name][column] for column in read or tpch_schema.COLUMNS[name]}
    for name, read in _READ.items()
}
KEYS = tpch_schema.KEYS

_SUMS = """
    SELECT l_shipmode,
           SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high,
           SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low"""
_LATE = """l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
      AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode"""
QUERIES = {
    "q3": tpch_schema.QUERIES["q3"],
    "q12": f"{_SUMS} FROM orders, lineitem WHERE o_orderkey = l_orderkey AND {_LATE}",
    "q12 left": f"{_SUMS} FROM lineitem LEFT JOIN orders ON o_orderkey = l_orderkey WHERE {_LATE}",
    "q18": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)
          AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice""",
}
TABLES = {
    "q3": ("customer", "orders", "lineitem"),
    "q12": ("orders", "lineitem"),
    "q12 left": ("orders", "lineitem"),
    "q18": ("customer", "orders", "lineitem"),
}


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables with what is loaded first, a query over them, and the rows that come one by one and then go."""

    columns: Mapping[str, Columns]
    keys: Mapping[str, Sequence[str]]
    query: str
    loaded: Mapping[str, pa.Table]
    rows: Sequence[tuple[str, Row]]


def integers(rows: int, *, keyed: bool) -> Workload:
    """The count of a join of two tables over some thousand values."""
    rng = np.random.default_rng(1)
    tables = {name: {"a": "int", "b": "int"} for name in ("R", "S")}
    loaded = {name: pa.table({"a": np.arange(100_000), "b": rng.integers(0, 5000, 100_000)}) for name in tables}
    values = rng.integers(0, 5000, rows).tolist()
    given = [("RS"[i % 2], (200_000 + i, value)) for i, value in enumerate(values)]
    query = "SELECT R.b, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.b"
    return Workload(tables, {name: ["a"] for name in tables} if keyed else {}, query, loaded, given)


def workload(query: str, tables: Mapping[str, pa.Table], rows: int) -> Workload:
    """The end of the stream of a query's tables, one by one."""
    chosen = {name: tables[name] for name in TABLES[query]}
    total = sum(table.num_rows for table in chosen.values())
    cut = {name: table.num_rows - max(1, table.num_rows * rows // total) for name, table in chosen.items()}
    loaded = {name: table.slice(0, cut[name]) for name, table in chosen.items()}
    tails = {name: chosen[name].slice(cut[name]).combine_chunks() for name in chosen}
    given = [
        (name, row)
        for part in tpch_stream.stream(tails, 1)
        for name, piece in part
        for row in zip(*(column.to_pylist() for column in piece.columns), strict=True)
    ]
    declared = {name: COLUMNS[name] for name in chosen}
    return Workload(declared, {name: KEYS[name] for name in chosen}, QUERIES[query], loaded, given)


def as_tuples(work: Workload) -> list[Change]:
    return [(name, [row]) for name, row in work.rows]


def as_dicts(work: Workload) -> list[Change]:
    return [(name, [dict(zip(work.columns[name], row, strict=True))]) for name, row in work.rows]


def as_dataclasses(work: Workload) -> list[Change]:
    """Rows as instances of a dataclass for each table."""
    made = {name: dataclasses.make_dataclass(name, list(columns)) for name, columns in work.columns.items()}
    return [(name, [made[name](*row)]) for name, row in work.rows]


def filled(work: Workload, path: Path | None) -> Database:
    """A database with the view, and all rows but those that come one by one."""
    database = Database(path, durability="async") if path else Database()
    for name, columns in work.columns.items():
        database.create_table(name, columns, primary_key=work.keys.get(name))
    database.create_view("v", work.query)
    for name, table in work.loaded.items():
        database.insert(name, table)
    return database


def rates(work: Workload, changes: Sequence[Change], path: Path | None = None) -> tuple[float, float]:
    """Inserts and deletes a second; the view is checked after both."""
    database = filled(work, path)
    insert, delete = database.insert, database.delete
    begin = now()
    for name, rows in changes:
        insert(name, rows)
    middle = now()
    everything = {name: _with_rows(work, name) for name in work.columns}
    check_rows(database.view("v").to_arrow(), work.query, everything)
    start = now()
    for name, rows in reversed(changes):
        delete(name, rows)
    end = now()
    check_rows(database.view("v").to_arrow(), work.query, work.loaded)
    database.close()
    return len(changes) / (middle - begin), len(changes) / (end - start)


def _with_rows(work: Workload, name: str) -> pa.Table:
    """A table with all rows."""
    loaded = work.loaded[name]
    rows = [row for table, row in work.rows if table == name]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.concat_tables([loaded, pa.table(columns, schema=loaded.schema)]) if rows else loaded


def show_rates(name: str, work: Workload, changes: Sequence[Change], runs: int, target: str, *, durable: bool) -> None:
    """The median of some runs."""

    def once() -> tuple[float, float]:
        if not durable:
            return rates(work, changes)
        with tempfile.TemporaryDirectory() as directory:
            return rates(work, changes, Path(directory) / "database")

    found = sorted(once() for _ in range(runs))[runs // 2]
    show(f"{name}: inserts", found[0], "rows/s", target)
    show(f"{name}: deletes", found[1], "rows/s", target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", default=["int", *QUERIES])
    parser.add_argument("--forms", nargs="+", default=["tuples", "dicts", "dataclasses", "durable"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    works: list[tuple[str, Workload, str]] = []
    if "int" in options.only:
        works += [("integers", integers(options.rows, keyed=False), "500,000")]
        works += [("integers, key", integers(options.rows, keyed=True), "500,000")]
    chosen = [query for query in QUERIES if query in options.only]
    tables = tpch_stream.read(tpch_stream.generated(options.sf, options.data), COLUMNS) if chosen else {}
    works += [(query, workload(query, tables, options.rows), "200,000") for query in chosen]
    forms = {"tuples": as_tuples, "dicts": as_dicts, "dataclasses": as_dataclasses, "durable": as_tuples}
    for name, work, target in works:
        for form in options.forms:
            show_rates(f"{name}, {form}", work, forms[form](work), options.runs, target, durable=form == "durable")


if __name__ == "__main__":
    main()
