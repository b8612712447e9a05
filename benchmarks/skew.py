"""Do plans over heavy and light parts cost what the sources promise? Slopes of kernel operations over growing N.

    python -m benchmarks.skew [--max 300000] [--only NAME]

Rows are toggled (deleted and inserted again) in databases made to hurt (see `skew_instances`); what counts is the
dearest pair of block and relation at each size. Classical maintenance toggles the same rows of the stars beside it.
Answers are compared with DuckDB's and with another strategy's first. Times are the CPU's. Exits with 1 if a slope is
out of its bounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa

from benchmarks.measure import check_rows
from benchmarks.skew_instances import Block, Rows, brinks, contexts, hubs, packings, relations_of, stars
from ivme.database import Database
from ivme.engine.runtime.open_read import BLOCK
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.view import View

HALF, THIRD, TWO_THIRDS = Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)
TOGGLES = 12
MOST_READ = 30_000
"""Rows read for a delay: many more than a reader fetches at once."""

LARGEST_LISTING = 500_000
"""Listings of triangles may store N^3/2 entries: 2M rows of the dense instance do not fit 24 GB."""

CLASSICAL = 0.95
"""The least slope that classical maintenance must show on the stars: they hurt."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A count to measure: its rule and ε, the most its slope may be, and the largest N."""

    rule: str
    epsilon: Fraction
    most: float
    largest: int
    denominators: tuple[int, ...] = (2,)
    apart: bool = False
    """Whether each block is a database of its own: N is then as small as the block, and what is heavy in it is."""


COUNTS = {
    "triangle": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,A)", HALF, 0.55, 2_000_000),
    "R(A),S(A,B),T(B)": Counted("Q(COUNT) = R(A), S(A,B), T(B)", HALF, 0.55, 2_000_000),
    "3-path": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,D)", HALF, 0.55, 2_000_000),
    "4-path": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,D), U(D,E)", HALF, 0.55, 2_000_000),
    "Loomis-Whitney 4": Counted("Q(COUNT) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)", HALF, 0.55, 2_000_000, (2, 3)),
    "4-cycle": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,D), U(D,A)", THIRD, 0.72, 200_000, (2, 3), apart=True),
    "pendant": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,A), U(A,D)", TWO_THIRDS, 0.72, 1_000_000, (2, 3), apart=True),
    "diamond": Counted("Q(COUNT) = R(A,B), S(B,C), T(C,D), U(D,A), V(A,C)", THIRD, 0.72, 64_000, (2, 3), apart=True),
}
TRIANGLE = "R(A,B), S(B,C), T(C,A)"
READ = {
    "C1": (f"Q(A|.) = {TRIANGLE}", HALF),
    "C2": (f"Q(A,B|.) = {TRIANGLE}", HALF),
    "C3": (f"Q(A,B,C|.) = {TRIANGLE}", HALF),
    "CQAP1": ("Q(B,C|.) = R(A,B), S(A,C)", HALF),
}


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent that fits best."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1)), 1)[0])


def made(rule: str, blocks: Iterable[Block] = (), **options: object) -> tuple[Database, View]:
    """A database with the blocks' rows, loaded before the view is made."""
    query, database = parse_rule(rule), Database()
    blocks = list(blocks)
    for name, schema in relations_of(query).items():
        database.create_table(name, {f"c{i}": "int" for i in range(len(schema))})
        for block in blocks:
            database.insert(name, block.rows[name])
    return database, database.create_view("q", rule, **options)


@dataclass(frozen=True, slots=True)
class Toggle:
    """What toggling rows of a relation in a block costs for each update."""

    where: str
    operations: float
    seconds: float


def toggle(database: Database, relation: str, rows: Rows, where: str) -> Toggle:
    """Deletes and inserts some of the rows, one by one."""
    chosen = np.random.default_rng(7).permutation(len(rows))[:TOGGLES]
    backend, began = database._runtime.backend, process_time()
    before = backend.operations
    for row in map(tuple, rows[chosen].tolist()):
        database.delete(relation, [row])
        database.insert(relation, [row])
    updates = 2 * len(chosen)
    return Toggle(where, (backend.operations - before) / updates, (process_time() - began) / updates)


def toggles(database: Database, blocks: Iterable[Block]) -> list[Toggle]:
    return [
        toggle(database, name, rows, f"{name} in {block.name}")
        for block in blocks
        for name, rows in block.toggled.items()
    ]


def dearest(found: Iterable[Toggle]) -> Toggle:
    return max(found, key=lambda each: each.operations)


class Report:
    """Lines for people, and whether a bound was broken."""

    def __init__(self) -> None:
        self.broken = False
        print(f"{'what':<34} {'N':>9} {'operations':>12} {'time':>10}  where")

    def line(self, what: str, size: float, operations: float, seconds: float, where: str = "") -> None:
        print(f"{what:<34} {size:>9,.0f} {operations:>12,.1f} {1e6 * seconds:>8,.0f}µs  {where}", flush=True)

    def verdict(self, what: str, found: float, *, most: float = np.inf, least: float = -np.inf, also: str = "") -> None:
        held = least <= found <= most
        self.broken |= not held
        bound = f"at most {most:g}" if most < np.inf else f"at least {least:g}"
        print(f"{what:<34} slope {found:.2f}, {bound}{also}{'' if held else '  OUT OF BOUNDS'}", flush=True)


def sizes_to(largest: int, least: int = 10_000) -> list[int]:
    """Three sizes for each decade."""
    count = max(3, round(3 * np.log10(largest / least)) + 1)
    return [round(size) for size in np.geomspace(min(least, largest // 8), largest, count)]


def count_slopes(report: Report, name: str, case: Counted, largest: int) -> None:
    """Operations for each update of a count, on all instances; and of classical maintenance on the stars."""
    query = parse_rule(case.rule)
    check_count(case, query)
    sizes = sizes_to(min(largest, case.largest))
    ours: list[Toggle] = []
    theirs: list[Toggle] = []
    for size in sizes:
        found = []
        plain, hard = stars(query, size), packings(query, size, case.denominators)
        light = brinks(query, size, case.epsilon, case.denominators)
        together = (plain, hard, light, hubs(query, size, case.epsilon))
        for blocks in [[block] for group in together for block in group] if case.apart else together:
            database, _ = made(case.rule, blocks, strategy="skew", epsilon=case.epsilon)
            found += toggles(database, blocks)
            database.close()
        ours.append(dearest(found))
        report.line(f"{name}, skew", size, ours[-1].operations, ours[-1].seconds, ours[-1].where)
        database, _ = made(case.rule, plain, strategy="classical")
        theirs.append(dearest(toggles(database, plain)))
        database.close()
        report.line(f"{name}, classical", size, theirs[-1].operations, theirs[-1].seconds, theirs[-1].where)
    for kind, measured, bounds in (("skew", ours, {"most": case.most}), ("classical", theirs, {"least": CLASSICAL})):
        timed = slope(sizes, [1e9 * each.seconds for each in measured])
        counted = slope(sizes, [each.operations for each in measured])
        report.verdict(f"{name}, {kind}", counted, **bounds, also=f" (time {timed:.2f})")


def check_count(case: Counted, query: Query, size: int = 1500) -> None:
    """The count is DuckDB's and that of classical maintenance, after toggles that leave some rows deleted."""
    hard = packings(query, size, case.denominators)
    light = brinks(query, size, case.epsilon, case.denominators)
    for blocks in (stars(query, size), hard, light, hubs(query, size, case.epsilon)):
        database, view = made(case.rule, blocks, strategy="skew", epsilon=case.epsilon)
        toggles(database, blocks)
        gone = {name: blocks[0].toggled[name][:3] for name in relations_of(query)}
        for name, rows in gone.items():
            database.delete(name, rows)
        other, classical = made(case.rule, blocks, strategy="classical")
        for name, rows in gone.items():
            other.delete(name, rows)
        if view.scalar() != classical.scalar():
            raise AssertionError(f"{case.rule}: skew counts {view.scalar()}, classical {classical.scalar()}")
        left = {n: np.concatenate([b.rows[n] for b in blocks]) for n in relations_of(query)}
        check_rows(view.to_arrow(), sql_of(query), {n: as_table(rows, gone[n]) for n, rows in left.items()})


def as_table(rows: Rows, gone: Rows) -> pa.Table:
    """The rows that are left, with the columns of `made`."""
    dead = set(map(tuple, gone.tolist()))
    kept = np.array([row for row in map(tuple, rows.tolist()) if row not in dead]).reshape(-1, rows.shape[1])
    return pa.table({f"c{i}": kept[:, i] for i in range(rows.shape[1])})


def sql_of(query: Query) -> str:
    """The count in DuckDB's words."""
    places: dict[str, list[str]] = {}
    for name, schema in relations_of(query).items():
        for i, variable in enumerate(schema):
            places.setdefault(variable, []).append(f"{name}.c{i}")
    equal = [f"{first} = {other}" for first, *rest in places.values() for other in rest]
    return f"SELECT COUNT(*) FROM {', '.join(relations_of(query))} WHERE {' AND '.join(equal)}"


def oumv_slope(report: Report, largest: int) -> None:
    """The reduction of source 003, section 6.7: S is a matrix, R and T are vectors that change in each round."""
    sizes, found = sizes_to(largest), []
    for size in sizes:
        n = int(size**0.5)
        rng = np.random.default_rng(size)
        matrix = rng.random((n, n)) < 0.5
        database, view = made(COUNTS["triangle"].rule, strategy="skew", epsilon=HALF)
        database.insert("S", np.argwhere(matrix))
        backend, began, updates = database._runtime.backend, process_time(), 0
        before = backend.operations
        old = {"R": np.zeros(n, bool), "T": np.zeros(n, bool)}
        for _ in range(3):
            new = {name: rng.random(n) < 0.5 for name in old}
            for name, vector in new.items():
                for i in np.flatnonzero(vector != old[name]).tolist():
                    row = (-1, i) if name == "R" else (i, -1)
                    (database.insert if vector[i] else database.delete)(name, [row])
                    updates += 1
            old = new
            expected = int(new["R"] @ matrix.astype(int) @ new["T"])
            if view.scalar() != expected:
                raise AssertionError(f"u M v is {expected}, the view has {view.scalar()}")
        found.append((backend.operations - before) / updates)
        report.line("triangle, OuMv", size, found[-1], (process_time() - began) / updates)
        database.close()
    report.verdict("triangle, OuMv", slope(sizes, found), most=0.55)


def space_slope(report: Report, largest: int) -> None:
    """Entries of all maps of the linear plan for triangles."""
    case = COUNTS["triangle"]
    query, sizes = parse_rule(case.rule), sizes_to(largest)
    instances: dict[str, Callable[[int], list[Block]]] = {
        "packings": lambda size: packings(query, size, (2,)),
        "hubs": lambda size: hubs(query, size, HALF),
    }
    for name, instance in instances.items():
        stored: list[int] = []
        entries: list[int] = []
        for size in sizes:
            database, view = made(case.rule, instance(size), strategy="skew", epsilon=HALF)
            stored.append(view.stats()["n"])
            entries.append(sum(view.stats()["maps"].values()))
            report.line(f"triangle, entries, {name}", stored[-1], entries[-1], 0)
            database.close()
        report.verdict(f"triangle, entries, {name}", slope(stored, entries), most=1.05)


def insert_slope(report: Report, largest: int) -> None:
    """N single inserts into the empty triangle database: N^(3/2) operations in all, rebalancing included."""
    query = parse_rule(COUNTS["triangle"].rule)
    lengths: list[int] = []
    totals: list[int] = []
    for size in sizes_to(min(largest, 100_000), 2000):
        database, view = made(COUNTS["triangle"].rule, strategy="skew", epsilon=HALF)
        blocks = [*packings(query, size // 2, (2,)), *hubs(query, size // 2, HALF)]
        rows = [
            (name, row) for block in blocks for name, part in block.rows.items() for row in map(tuple, part.tolist())
        ]
        order = np.random.default_rng(1).permutation(len(rows))
        began, before = process_time(), database._runtime.backend.operations
        for i in order:
            database.insert(rows[i][0], [rows[i][1]])
        lengths.append(len(rows))
        totals.append(database._runtime.backend.operations - before)
        report.line("N inserts, in all", len(rows), totals[-1], process_time() - began)
        other, expected = made(COUNTS["triangle"].rule, blocks, strategy="skew", epsilon=HALF)
        if view.scalar() != expected.scalar():
            raise AssertionError(f"inserts make {view.scalar()} triangles, the bulk build {expected.scalar()}")
        database.close()
        other.close()
    report.verdict("N inserts, in all", slope(lengths, totals), most=1.55)


def dense(query: Query, size: int, _: Fraction) -> dict[str, Rows]:
    """N^½ values for each variable, all rows: each output has as many derivations as the bound allows."""
    relations = relations_of(query)
    each = int((size / len(relations)) ** 0.5)
    values = np.arange(each * each)
    return {name: np.stack([values // each, values % each], axis=1) for name in relations}


def thinned(query: Query, size: int, epsilon: Fraction) -> dict[str, Rows]:
    """The same with one row in the last relation: candidates abound, answers do not."""
    rows = dense(query, size, epsilon)
    last = list(rows)[-1]
    return {**rows, last: rows[last][-1:]}


def all_hubs(query: Query, size: int, epsilon: Fraction) -> dict[str, Rows]:
    """All values that matter are heavy."""
    return hubs(query, size, epsilon)[0].rows


def worst_delay(database: Database, view: View) -> tuple[float, int]:
    """Operations for each row, of all rows so far: the most after any block. The end counts as a row.

    Rows are read as an iterator reads them; who wants all of them at once does not wait for the first.
    """
    runtime, read, worst = database._runtime, 0, 0.0
    before = runtime.backend.operations
    cursor = runtime.reader.open_cursor(view.state, ())
    while rows := len(runtime.reader.next_block(view.state, cursor, BLOCK)[1]):
        read += rows
        worst = max(worst, (runtime.backend.operations - before) / read)
        if read > MOST_READ:
            return worst, read
    return max(worst, (runtime.backend.operations - before) / (read + 1)), read


def delay_slopes(report: Report, name: str, rule: str, epsilon: Fraction, largest: int) -> None:
    """Operations for each row of all that is read, the end of the answer counted as a row."""
    query = parse_rule(rule)
    for kind, instance in (("dense", dense), ("one last row", thinned), ("heavy", contexts), ("hubs", all_hubs)):
        sizes, found = sizes_to(min(largest, LARGEST_LISTING)), []
        for size in [900, *sizes]:
            database = Database()
            for relation, rows in instance(query, size, epsilon).items():
                database.create_table(relation, {"c0": "int", "c1": "int"})
                database.insert(relation, rows)
            view = database.create_view("q", rule, strategy="skew", epsilon=epsilon)
            if size == 900:
                reference = database.create_view("other", rule, strategy="classical")
                if sorted(view.items()) != sorted(reference.items()):
                    raise AssertionError(f"{rule}: skew and classical differ")
                continue
            began = process_time()
            worst, read = worst_delay(database, view)
            found.append(worst)
            report.line(f"{name}, a row, {kind}", size, worst, (process_time() - began) / (read + 1))
            database.close()
        delay = view.explain().delay
        assert delay is not None
        promised = float(delay.exponent.at(epsilon))
        report.verdict(f"{name}, a row, {kind}", slope(sizes, found), most=promised + 0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max", type=int, default=300_000, help="the largest N")
    parser.add_argument("--only", default="", help="measure only what has this in its name")
    options = parser.parse_args()
    report = Report()
    tasks: dict[str, Callable[[], None]] = {
        **{name: partial(count_slopes, report, name, case, options.max) for name, case in COUNTS.items()},
        "OuMv": lambda: oumv_slope(report, options.max),
        "entries": lambda: space_slope(report, options.max),
        "inserts": lambda: insert_slope(report, options.max),
        **{f"delay {name}": partial(delay_slopes, report, name, *read, options.max) for name, read in READ.items()},
    }
    for name, task in tasks.items():
        if options.only in name:
            task()
    return int(report.broken)


if __name__ == "__main__":
    sys.exit(main())
