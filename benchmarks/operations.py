"""Ten small workloads whose kernel operations are counted: the same numbers on every machine, in every run.

    python -m benchmarks.operations

Time is for `make bench`; a count cannot be noisy, so that continuous integration compares it exactly with
`tests/golden/operations.json` (see `tests/golden/test_operations.py`). Each workload counts what it takes to load or
build, to update, and to read, as far as it does these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import access, closure, join_count, skew, triangles
from benchmarks.graphs import Rows, in_and_out, power_law
from benchmarks.marks import PATH
from benchmarks.skew_instances import hubs, packings, stars
from benchmarks.spark_refresh import filled
from benchmarks.spark_workloads import sales
from ivme.database import Database
from ivme.query.rule import parse_rule
from ivme.view import View

Counts = dict[str, int]
Phase = tuple[str, Callable[[], object]]


def counted(view: View, *phases: Phase) -> Counts:
    """The kernel's operations in each phase; what was done before counts as `build`."""
    reached = view.stats()["operations"]
    counts = {"build": reached} if reached else {}
    for name, work in phases:
        work()
        now = view.stats()["operations"]
        counts[name], reached = now - reached, now
    return counts


def for_each(work: Callable[..., object], calls: Iterable[tuple[Any, ...]]) -> None:
    """One call for each tuple of arguments."""
    for arguments in calls:
        work(*arguments)


def join_in_batches() -> Counts:
    database, view = join_count.declared()
    batches = join_count.in_turn(join_count.tables(2000), 100)
    return counted(
        view,
        ("insert", partial(for_each, database.insert, batches)),
        ("delete", partial(for_each, database.delete, batches)),
        ("read", view.scalar),
    )


def join_row_by_row() -> Counts:
    database, view = join_count.declared()
    rows = [(n, [tuple(row.values())]) for n, part in join_count.tables(500).items() for row in part.to_pylist()]
    return counted(
        view,
        ("insert", partial(for_each, database.insert, rows)),
        ("delete", partial(for_each, database.delete, rows)),
    )


def five_tables() -> Counts:
    workload = sales(2000)
    database = filled(workload)
    changes = workload.changes(200)
    return counted(
        database.definitions.map_view("v"),
        ("change", lambda: database.apply(workload.changing, *changes)),
        ("read", database.definitions.map_view("v").to_arrow),
    )


def requests() -> Counts:
    made = access.instance(2000)
    return counted(
        made.view,
        ("one by one", lambda: [list(made.view(a=a)) for a in range(200)]),
        ("in a batch", lambda: made.view.request_many(a=np.arange(200))),
    )


def triangle_count() -> Counts:
    """With heavy and light parts, and without."""
    batches = in_and_out(power_law(2000, 400)).batches(100)
    counts: Counts = {}
    for strategy in ("skew", "classical"):
        database, view = triangles.declared(strategy)
        counts |= counted(view, (strategy, partial(for_each, partial(database.apply, "E"), batches)))
    return counts


def hub_toggles() -> Counts:
    case = skew.COUNTS["triangle"]
    query = parse_rule(case.rule)
    blocks = [*stars(query, 3000), *hubs(query, 3000, case.epsilon)]
    database, view = skew.made(case.rule, blocks, strategy="skew", epsilon=case.epsilon)
    return counted(view, ("toggle", lambda: skew.toggles(database, blocks)))


def four_cycle() -> Counts:
    case = skew.COUNTS["4-cycle"]
    blocks = packings(parse_rule(case.rule), 1500, case.denominators)
    database, view = skew.made(case.rule, blocks, strategy="skew", epsilon=case.epsilon)
    return counted(view, ("toggle", lambda: skew.toggles(database, blocks)))


def pairs_with_half() -> Counts:
    """The trade-off between updates and reads, at ε = 1/2."""
    rule, epsilon = skew.READ["CQAP1"]
    database = Database()
    rows = {name: power_law(600, 100, seed=seed) for seed, name in enumerate("RS")}
    for name, part in rows.items():
        database.create_table(name, {"c0": "int", "c1": "int"})
        database.insert(name, part)
    view = database.create_view("q", rule, strategy="skew", epsilon=Fraction(epsilon))
    return counted(
        view,
        ("update", lambda: _toggled(database, "R", rows["R"][:50])),
        ("read", lambda: sum(1 for _ in view.items())),
    )


def _toggled(database: Database, name: str, rows: Rows) -> None:
    for row in map(tuple, rows.tolist()):
        database.delete(name, [row])
        database.insert(name, [row])


def append_only_path() -> Counts:
    database = Database()
    for name, columns in PATH.columns.items():
        database.create_table(name, dict.fromkeys(columns, "int"), append_only=True)
    view = database.create_view("v", PATH.query, strategy="marks")
    rows = [(name, [tuple(row.values())]) for name, part in PATH.rows(600).items() for row in part.to_pylist()]
    return counted(
        view,
        ("insert", partial(for_each, database.insert, rows)),
        ("read", lambda: sum(1 for _ in view)),
    )


def reachability() -> Counts:
    database = Database()
    database.create_table("edge", {"src": "int", "dst": "int"})
    view = database.create_view("reach", "Q(X, Y) = closure(edge)")
    batches: Iterable[tuple[pa.Table, list[int]]] = [
        (closure.table_of(rows), weights) for rows, weights in closure.stream(power_law(1500, 300))
    ]
    return counted(view, ("change", partial(for_each, partial(database.apply, "edge"), batches)))


WORKLOADS: dict[str, Callable[[], Counts]] = {
    "join count, batches": join_in_batches,
    "join count, row by row": join_row_by_row,
    "five-table join with sums": five_tables,
    "access requests": requests,
    "triangle count": triangle_count,
    "hub toggling": hub_toggles,
    "4-cycle count": four_cycle,
    "pairs at ε = 1/2": pairs_with_half,
    "append-only path, marks": append_only_path,
    "reachability": reachability,
}


def main() -> None:
    for name, workload in WORKLOADS.items():
        print(f"{name:<28}", ", ".join(f"{phase} {count:,}" for phase, count in workload().items()), flush=True)


if __name__ == "__main__":
    main()
