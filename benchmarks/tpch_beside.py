"""The peers of `benchmarks.tpch` that have a process of their own: PostgreSQL, Pathway, @tanstack/db-ivm, pg_ivm.

PostgreSQL and Pathway get the streams of `python -m benchmarks.peers --only tpch` (five queries over integers, single
rows and batches of 1,000 that come and go), @tanstack/db-ivm that of `python -m benchmarks.live_queries`. One that
cannot be had is named with the reason.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks import live_queries
from benchmarks.peers.__main__ import Run
from benchmarks.peers.missing import MissingError
from benchmarks.peers.report import shown
from benchmarks.peers.sizes import FULL
from benchmarks.peers.tpch_workloads import tpch_workloads

LIVE_ROWS = 100_000
LIVE_BATCHES = (1, 1000)


def lines_beside(scale: str, data: Path, modules: Path, seconds: float) -> Iterator[str]:
    """Tables in Markdown, as they come; `seconds` is what a peer gets for each workload."""
    yield from _rounds(scale, data, seconds)
    yield ""
    try:
        yield from _live(live_queries.installed(modules))
    except MissingError as error:
        yield f"Missing: {error}."
    yield ""
    yield pg_ivm()


def _rounds(scale: str, data: Path, seconds: float) -> Iterator[str]:
    sizes = replace(FULL, scale=scale, seconds=seconds)
    with ExitStack() as stack:
        run = Run(sizes, ("postgres", "pathway"), stack)
        yield "| workload | peer | a round of theirs, ms | of ivme's, ms | times as fast |"
        yield "|---|---|---:|---:|---:|"
        for workload in tpch_workloads(sizes, data):
            before = len(run.results)
            run.measure(workload)
            for result in run.results[before:]:
                theirs, ours = (sum(each) / len(each) * 1e3 for each in (result.theirs, result.ours))
                yield f"| {result.title} | {result.peer} | {theirs:,.3f} | {ours:,.3f} | {shown(result.ratio)} |"
        yield ""
        yield from (f"Missing: {peer}: {reason}." for peer, reason in run.missing.items())


def _live(module: Path) -> Iterator[str]:
    customers, orders = live_queries.made(LIVE_ROWS)
    yield "| orders joined with customers by city, batch | ivme, rows/s CPU | @tanstack/db-ivm, rows/s CPU | times |"
    yield "|---:|---:|---:|---:|"
    for size in LIVE_BATCHES:
        ours = live_queries.by_ivme(customers, orders, size)
        theirs = live_queries.by_tanstack(module, customers, orders, size)
        if ours[2] != theirs[2]:
            raise AssertionError(f"@tanstack/db-ivm in batches of {size}: the answers differ")
        rates = [f"{len(orders) / each[0]:,.0f}" for each in (ours, theirs)]
        yield f"| {size:,} | {' | '.join(rates)} | {theirs[0] / ours[0]:.1f} |"


def pg_ivm() -> str:
    """Whether Debian has a package of pg_ivm."""
    if shutil.which("apt-cache") is None:
        return "Missing: pg_ivm: there is no apt-cache to look for its package."
    done = subprocess.run(
        ["apt-cache", "search", "--names-only", "pg.?ivm"], capture_output=True, text=True, check=True
    )
    found = done.stdout.strip()
    if found:
        return f"Missing: pg_ivm: it has a package now ({found.splitlines()[0]}), and no workload is written for it."
    return "Missing: pg_ivm: this system's package lists have no package of it."
