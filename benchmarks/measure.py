"""What the benchmarks share: times, figures beside their targets, and the check of results against DuckDB."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa

_clock: list[Callable[[], float]] = [time.perf_counter]


def now() -> float:
    """Seconds on the clock that was chosen."""
    return _clock[0]()


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, with those that all benchmarks have; says how busy the machine is.

    `--cpu` is for a machine that others use at the same time: it counts the CPU's seconds for this process.
    """
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds, not seconds on the wall")
    options = parser.parse_args(arguments)
    if options.cpu:
        _clock[0] = time.process_time
    clock = "CPU seconds of this process" if options.cpu else "seconds on the wall"
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {clock}, median of {options.runs}")
    return options


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes, once."""
    start = now()
    work()
    return now() - start


def median(measure: Callable[[], float], runs: int) -> float:
    """The median of several measurements, each from scratch."""
    return statistics.median(measure() for _ in range(runs))


def show(name: str, value: float, unit: str, target: str = "") -> None:
    """Prints a figure, and what it should be."""
    text = f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
    print(f"{name:<52} {text:>13} {unit:<12} {target and f'target {target}'}".rstrip(), flush=True)


def check_rows(ours: pa.Table, query: str, tables: Mapping[str, pa.Table]) -> None:
    """Raises unless DuckDB's answer to the query over the tables has the same rows, whatever their order."""
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    theirs = Counter(connection.execute(query).fetchall())
    mine = Counter(zip(*(column.to_pylist() for column in ours.columns), strict=True))
    if mine != theirs:
        extra, missing = next(iter(mine - theirs), None), next(iter(theirs - mine), None)
        raise AssertionError(f"{query}\n  only here: {extra}\n  only in DuckDB: {missing}")
