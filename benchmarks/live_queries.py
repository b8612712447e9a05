"""Orders joined with customers, by city, kept fresh while orders come: ivme beside the engine of TanStack DB.

    python -m benchmarks.live_queries [--rows 100000] [--batch 1 1000] [--runs 3] [--node-modules DIRECTORY]

`@tanstack/db-ivm` is installed by npm into a folder of its own and run by node in the same run. Both are given rows
that are parsed already: objects of JavaScript there, tuples here (record batches for more than 64 rows). The rows of
both are compared before anything is printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import parse
from benchmarks.peers.missing import MissingError
from ivme.database import Database

PACKAGE = "@tanstack/db-ivm@0.2.0"
SCRIPT = Path(__file__).parent / "peers" / "db_ivm.mjs"
VIEW = "SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM orders JOIN customers ON customer = cid GROUP BY city"
CITIES = [f"city {number}" for number in range(50)]
LIST = 64
"""Up to so many rows are given as tuples."""

Rows = list[tuple[Any, ...]]


def installed(folder: Path) -> Path:
    """The module, installed if it is not there."""
    module = folder / "node_modules" / "@tanstack" / "db-ivm" / "dist" / "esm" / "index.js"
    npm = shutil.which("npm")
    if not module.exists():
        if npm is None:
            raise MissingError("@tanstack/db-ivm", "there is no npm")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", "--silent", "--prefix", str(folder), PACKAGE], check=True)
    return module


def made(rows: int) -> tuple[Rows, Rows]:
    """Customers and orders."""
    rng = np.random.default_rng(1)
    customers = [(number, CITIES[city]) for number, city in enumerate(rng.integers(0, 50, 10_000).tolist())]
    picked, amounts = rng.integers(0, 10_000, rows).tolist(), rng.integers(1, 500, rows).tolist()
    return customers, list(zip(range(rows), picked, amounts, strict=True))


def by_ivme(customers: Rows, orders: Rows, size: int) -> tuple[float, float, set[Any]]:
    database = Database()
    database.create_table("customers", {"cid": "int", "city": "string"}, primary_key="cid")
    database.create_table("orders", {"oid": "int", "customer": "int", "amount": "int"}, primary_key="oid")
    view = database.create_view("v", VIEW)
    database.insert("customers", customers)
    batches = [_given(orders[at : at + size]) for at in range(0, len(orders), size)]
    cpu, wall = time.process_time(), time.perf_counter()
    for batch in batches:
        database.insert("orders", batch)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    return *taken, set(view)


def _given(rows: Sequence[Any]) -> Any:
    if len(rows) <= LIST:
        return list(rows)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=["oid", "customer", "amount"])


def by_tanstack(module: Path, customers: Rows, orders: Rows, size: int) -> tuple[float, float, set[Any]]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"customers": customers, "orders": orders, "size": size}, file)
        file.flush()
        command = ["node", str(SCRIPT), str(module), file.name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return found["cpu"], found["wall"], set(map(tuple, found["rows"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--node-modules", type=Path, default=Path(tempfile.gettempdir()) / "ivme-node")
    options = parse(parser)
    module = installed(options.node_modules)
    customers, orders = made(options.rows)
    print("| batch | ivme, rows/s CPU | wall | @tanstack/db-ivm, rows/s CPU | wall | ivme / it, CPU |")
    print("|---:|---:|---:|---:|---:|---:|")
    for size in options.batch:
        ours = min(by_ivme(customers, orders, size) for _ in range(options.runs))
        theirs = min(by_tanstack(module, customers, orders, size) for _ in range(options.runs))
        assert ours[2] == theirs[2], "the answers differ"
        rates = [f"{len(orders) / seconds:,.0f}" for seconds in (*ours[:2], *theirs[:2])]
        print(f"| {size:,} | {' | '.join(rates)} | {theirs[0] / ours[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
