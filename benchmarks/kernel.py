"""How fast is the compiled kernel? Updates, requests and rows per second, checked against the interpreter first.

    python -m benchmarks.kernel [--rows 1000000] [--only NAME]

Every workload is run once at a small scale on both kernels, whose maps must be equal; only then it is timed. The
keys are uniform over a domain about as large as the tables, so that the state does not fit into the caches.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.programs import ProgramOnBackend
from ivme import _kernel
from ivme.algebra.ring import count
from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule

Columns = list[np.ndarray[Any, np.dtype[np.int64]]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A view, how it is maintained, and the domains of the tables' columns as fractions of the number of rows."""

    query: str
    strategy: str
    domains: dict[str, tuple[float, ...]]

    def native(self) -> ProgramOnBackend:
        return ProgramOnBackend(plan_with(self.strategy, parse_rule(self.query)).program)

    def columns(self, relation: str, n: int, scale: int, rng: np.random.Generator) -> Columns:
        return [rng.integers(0, max(1, int(scale * share)), n) for share in self.domains[relation]]


JOIN_COUNT = Workload("Q(A, COUNT) = R(A,B), S(A,C)", "view-tree", {"R": (0.2, 1), "S": (0.2, 1)})
GLOBAL_SUM = Workload("Q(SUM(X), SUM(Y)) = R(A,X), S(A,Y)", "view-tree", {"R": (0.2, 1e-3), "S": (0.2, 1e-3)})
JOIN_ROWS = Workload("Q(A, B, C) = R(A,B), S(A,C)", "view-tree", {"R": (0.2, 1), "S": (0.2, 1)})
REQUESTS = Workload("Q(B, C | A) = R(A,B), S(A,C)", "view-tree", {"R": (1, 1), "S": (1, 1)})
TRIANGLE = "Q(.|.) = R(A,B), S(B,C), T(C,A)"
TRIANGLE_DOMAINS: dict[str, tuple[float, ...]] = {"R": (0.05, 0.05), "S": (0.05, 0.05), "T": (0.05, 0.05)}
TRIANGLE_TREE = Workload(TRIANGLE, "view-tree", TRIANGLE_DOMAINS)
TRIANGLE_DELTA = Workload(TRIANGLE, "classical", TRIANGLE_DOMAINS)


def check(workload: Workload, scale: int = 300) -> None:
    """Both kernels hold the same maps after the same batches of inserts and deletes."""
    program = plan_with(workload.strategy, parse_rule(workload.query)).program
    native, pure = ProgramOnBackend(program), Interpreter(program)
    rng = np.random.default_rng(7)
    for relation in workload.domains:
        for _ in range(4):
            columns = workload.columns(relation, scale, scale, rng)
            weights = rng.choice(np.array([1, 1, 1, -1]), scale)
            changes: Counter[Any] = Counter()
            for row, weight in zip(zip(*(c.tolist() for c in columns), strict=True), weights.tolist(), strict=True):
                changes[row] += weight
            native.apply_columns(relation, feed(native, relation, columns), weights)
            pure.apply(relation, {row: weight for row, weight in changes.items() if weight})
    for declared in program.maps:
        columns, counts = native.backend.scan(declared.name)
        keys = zip(*(column.tolist() for column in columns), strict=True) if columns else [()] * len(counts)
        found = {key: count(payload) for key, payload in pure.map(declared.name).items()}
        assert found == dict(zip(keys, counts.tolist(), strict=True)), declared.name
    native.backend.kernel.verify()


def feed(kernel: ProgramOnBackend, relation: str, columns: Columns) -> Columns:
    """The relation's columns as its trigger wants them; integers are their own codes in every form."""
    names = [column.name for column in kernel.program.trigger(relation).steps[0].source.atom.columns]  # type: ignore
    return [columns[names.index(column.expression.name)] for column in kernel.feed(relation)]  # type: ignore


def batches(columns: Columns, size: int) -> Iterator[Columns]:
    for start in range(0, len(columns[0]), size):
        yield [column[start : start + size] for column in columns]


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load(workload: Workload, rows: int, rng: np.random.Generator, batch: int = 10_000) -> ProgramOnBackend:
    kernel = workload.native()
    for relation in workload.domains:
        for part in batches(feed(kernel, relation, workload.columns(relation, rows, rows, rng)), batch):
            kernel.apply_columns(relation, part, np.ones(len(part[0]), np.int64))
    return kernel


def updates(workload: Workload, rows: int, batch: int) -> float:
    """Updates a second on a loaded database: inserts and deletes of random rows, table by table in turn."""
    rng = np.random.default_rng(1)
    kernel = load(workload, rows, rng)
    n = min(rows, 1_000_000)
    work = []
    for relation in workload.domains:
        fresh = feed(kernel, relation, workload.columns(relation, n // len(workload.domains), rows, rng))
        work += [(relation, part) for part in batches(fresh, batch)]
    ones = np.ones(batch, np.int64)

    def run() -> None:
        for sign in (ones, -ones):
            for relation, part in work:
                kernel.apply_columns(relation, part, sign[: len(part[0])])

    return 2 * sum(len(part[0]) for _, part in work) / timed(run)


def single_updates(workload: Workload, rows: int) -> float:
    """Rows a second, one call a row, straight into the kernel."""
    rng = np.random.default_rng(1)
    kernel = load(workload, rows, rng)
    n = 200_000
    relation = next(iter(workload.domains))
    fresh = feed(kernel, relation, workload.columns(relation, n, rows, rng))
    tuples = list(zip(*(column.tolist() for column in fresh), strict=True))
    run_one, trigger = kernel.backend.run_one, kernel.backend.number(relation)

    def run() -> None:
        for row in tuples:
            run_one(trigger, row, 1)

    return n / timed(run)


def bulk_build(workload: Workload, rows: int) -> float:
    """Rows a second into empty maps, all tables at once."""
    rng = np.random.default_rng(1)
    kernel = workload.native()
    ones = np.ones(rows, np.int64)
    tables = {
        relation: (feed(kernel, relation, workload.columns(relation, rows, rows, rng)), ones)
        for relation in workload.domains
    }
    return rows * len(tables) / timed(lambda: kernel.build_columns(tables))


def enumeration(workload: Workload, rows: int) -> float:
    """Rows a second read into columns."""
    kernel = load(workload, rows, np.random.default_rng(1))
    read = 0

    def run() -> None:
        nonlocal read
        cursor = kernel.open({})
        while n := len(cursor.next_block()[1]):
            read += n

    seconds = timed(run)
    return read / seconds


def requests(workload: Workload, rows: int) -> float:
    """Access requests a second, a million in one call."""
    rng = np.random.default_rng(1)
    kernel = load(workload, rows, rng)
    asked = workload.columns("R", 1_000_000, rows, rng)[0]

    def run() -> None:
        kernel.request_many({"A": asked})

    return len(asked) / timed(run)


def memory_per_tuple(rows: int) -> float:
    """Bytes a tuple of a binary relation with one index."""
    rng = np.random.default_rng(5)
    plain = _kernel.Kernel(1)
    stored = plain.add_map(2, [])
    plain.add_index(stored, [0], [1])
    trigger = plain.add_trigger(1, [], [("load", 0, 0, [0, 1], [], [], [], []), ("add", 0, stored, False)])
    for part in batches([rng.integers(0, rows, rows), np.arange(rows)], 10_000):
        plain.run(trigger, [(part, np.ones(len(part[0]), np.int64))])
    return plain.memory_bytes() / plain.size(stored)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows: int = options.rows
    small = rows // 10
    measures: dict[str, tuple[Workload | None, Callable[[], float], str]] = {
        "join count, batches of 1,000": (JOIN_COUNT, lambda: updates(JOIN_COUNT, rows, 1_000), "updates/s"),
        "join count, batches of 10,000": (JOIN_COUNT, lambda: updates(JOIN_COUNT, rows, 10_000), "updates/s"),
        "global sum, batches of 1,000": (GLOBAL_SUM, lambda: updates(GLOBAL_SUM, rows, 1_000), "updates/s"),
        "join rows, batches of 1,000": (JOIN_ROWS, lambda: updates(JOIN_ROWS, rows, 1_000), "updates/s"),
        "join count, one row a call": (JOIN_COUNT, lambda: single_updates(JOIN_COUNT, rows), "updates/s"),
        "triangle count, view tree": (TRIANGLE_TREE, lambda: updates(TRIANGLE_TREE, small, 1_000), "updates/s"),
        "triangle count, classical": (TRIANGLE_DELTA, lambda: updates(TRIANGLE_DELTA, small, 1_000), "updates/s"),
        "bulk build, join count": (JOIN_COUNT, lambda: bulk_build(JOIN_COUNT, rows), "rows/s"),
        "bulk build, join rows": (JOIN_ROWS, lambda: bulk_build(JOIN_ROWS, rows), "rows/s"),
        "enumeration to columns": (JOIN_ROWS, lambda: enumeration(JOIN_ROWS, rows), "rows/s"),
        "access requests": (REQUESTS, lambda: requests(REQUESTS, rows), "requests/s"),
        "memory, one index": (None, lambda: memory_per_tuple(rows), "bytes/tuple"),
    }
    for name, (workload, measure, unit) in measures.items():
        if options.only in name:
            if workload is not None:
                check(workload)
            print(f"{name:<32} {measure():>14,.0f} {unit}", flush=True)


if __name__ == "__main__":
    main()
