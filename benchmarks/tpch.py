"""TPC-H Q3, Q5 and Q10 kept fresh while all tables come as one stream, interleaved row by row.

    python -m benchmarks.tpch [--sf 0.1] [--batch 1000 10000] [--query q3 q5 q10] [--runs 3] [--cpu] [--data DIRECTORY]

The tables are made by tpchgen-cli (PyPI). Each has the columns that some of the three queries reads, and is declared
as it is: no column is left out because a query does not need it. A row of a table comes when its share of the
stream has come, so that all tables end together. Batches are cut from the stream before the clock starts, as Arrow
columns in memory; the clock runs over db.batch(). At the end the view's rows are compared with DuckDB's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import check_rows, now, parse, show
from ivme.database import Database

COLUMNS = {
    "region": {"r_regionkey": "int", "r_name": "string"},
    "nation": {"n_nationkey": "int", "n_name": "string", "n_regionkey": "int"},
    "supplier": {"s_suppkey": "int", "s_nationkey": "int"},
    "customer": {
        "c_custkey": "int",
        "c_name": "string",
        "c_address": "string",
        "c_nationkey": "int",
        "c_phone": "string",
        "c_acctbal": "decimal(15, 2)",
        "c_mktsegment": "string",
        "c_comment": "string",
    },
    "orders": {"o_orderkey": "int", "o_custkey": "int", "o_orderdate": "date", "o_shippriority": "int"},
    "lineitem": {
        "l_orderkey": "int",
        "l_suppkey": "int",
        "l_extendedprice": "decimal(15, 2)",
        "l_discount": "decimal(15, 2)",
        "l_returnflag": "string",
        "l_shipdate": "date",
    },
}

QUERIES = {
    "q3": """
        SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "q5": """
        SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
          AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
    "q10": """
        SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
               c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
          AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
}
TABLES = {
    "q3": ("customer", "orders", "lineitem"),
    "q5": ("region", "nation", "supplier", "customer", "orders", "lineitem"),
    "q10": ("nation", "customer", "orders", "lineitem"),
}
TARGETS = {"q3": "2,000,000 at SF 1", "q5": "1,000,000 at SF 1", "q10": "2,000,000 at SF 1"}

Batch = list[tuple[str, pa.RecordBatch]]


def generated(scale: str, directory: Path) -> Path:
    """The directory with the tables as Parquet files, made if they are not there."""
    made = directory / f"sf{scale}"
    if not (made / "lineitem.parquet").exists():
        beside = Path(sys.executable).parent / "tpchgen-cli"
        program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
        if program is None:
            raise SystemExit("tpchgen-cli is missing; install it with: pip install tpchgen-cli")
        made.mkdir(parents=True, exist_ok=True)
        command = [program, "parquet", "--scale-factor", scale, "--output-dir", str(made)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return made


def read(directory: Path, declared: Mapping[str, Mapping[str, str]] = COLUMNS) -> dict[str, pa.Table]:
    """The tables with the columns that are declared, in the types in which they are kept."""
    tables = {}
    for name, columns in declared.items():
        table = pq.read_table(directory / f"{name}.parquet", columns=list(columns))
        fields = [
            (c, pa.string() if pa.types.is_string_view(t) or pa.types.is_large_string(t) else t)
            for c, t in zip(table.schema.names, table.schema.types, strict=True)
        ]
        fields = [(c, pa.int64() if pa.types.is_integer(t) else t) for c, t in fields]
        tables[name] = table.cast(pa.schema(fields)).combine_chunks()
    return tables


def stream(tables: dict[str, pa.Table], size: int) -> Iterator[Batch]:
    """The rows of all tables, interleaved in proportion, in batches of `size` rows."""
    total = sum(table.num_rows for table in tables.values())
    columns = {name: table.to_batches()[0] for name, table in tables.items()}
    edges = np.arange(0, total + size, size).clip(max=total)
    cuts = {name: (edges * table.num_rows) // total for name, table in tables.items()}
    for i in range(len(edges) - 1):
        parts = ((name, cut[i], cut[i + 1]) for name, cut in cuts.items())
        yield [(name, columns[name].slice(start, end - start)) for name, start, end in parts if end > start]


def maintained(query: str, tables: dict[str, pa.Table], batches: list[Batch]) -> tuple[float, pa.Table]:
    """The seconds for the whole stream, and the view's rows at its end."""
    database = Database()
    for name in tables:
        database.create_table(name, COLUMNS[name])
    view = database.create_view("v", query)
    start = now()
    for parts in batches:
        with database.batch() as batch:
            for name, rows in parts:
                batch.insert(name, rows)
    taken = now() - start
    return taken, view.to_arrow()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--query", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    options = parse(parser)
    all_tables = read(generated(options.sf, options.data))
    for query in options.query:
        tables = {name: all_tables[name] for name in TABLES[query]}
        rows = sum(table.num_rows for table in tables.values())
        for size in options.batch:
            batches = list(stream(tables, size))
            times = []
            for run in range(options.runs):
                taken, result = maintained(QUERIES[query], tables, batches)
                times.append(taken)
                if run == 0:
                    check_rows(result, QUERIES[query], tables)
            name = f"{query}, SF {options.sf}, {rows:,} changes, batches of {size:,}"
            show(name, rows / statistics.median(times), "changes/s", TARGETS[query])


if __name__ == "__main__":
    main()
