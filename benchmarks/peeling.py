"""Do views whose ears are peeled off cost what explain() prints? Slopes of kernel operations over growing N.

    python -m benchmarks.peeling [--max 100000]

As `benchmarks.skew` does for counts: rows are toggled in databases made to hurt, and the dearest pair of block and
relation counts at each size; the view tree toggles the same rows of the stars beside it. Answers are compared with
another strategy's first. Exits with 1 if a slope is out of its bounds.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.skew import Report, dearest, made, sizes_to, slope, toggles
from benchmarks.skew_instances import Block, brinks, hubs, packings, relations_of, stars
from ivme.query.model import Query
from ivme.query.rule import parse_rule

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@dataclass(frozen=True, slots=True)
class Listed:
    """A view to measure, the ε that is chosen for it, its promised exponent, and that of the view tree."""

    rule: str
    epsilon: Fraction
    promised: float
    tree: float = 1.0


LISTED = {
    "3-path": Listed("Q(A,B,C,D) = R(A,B), S(B,C), T(C,D)", HALF, 1 / 2),
    "edges' columns": Listed("Q(A,B,C,X,Y,Z) = R(A,B,X), S(B,C,Y), T(C,A,Z)", HALF, 1 / 2),
    "chosen nodes": Listed("Q(A,B,C) = R(A,B), S(B,C), T(C,A), U(A)", THIRD, 2 / 3),
    "pendant": Listed("Q(A,B,C,D) = R(A,B), S(B,C), T(C,A), U(A,D)", THIRD, 2 / 3),
}


def blocks_of(query: Query, size: int, epsilon: Fraction) -> Iterator[list[Block]]:
    """The instances: stars, packings, values that are just light, and hubs; and each with one value for the variables
    of a single atom, so that a row of an ear decides whether there are any."""
    for blocks in (
        stars(query, size),
        packings(query, size, (epsilon.denominator,)),
        brinks(query, size, epsilon, (2,)),
        hubs(query, size, epsilon),
    ):
        yield blocks
        yield [thinned(query, block) for block in blocks]


def thinned(query: Query, block: Block) -> Block:
    """The rows with the least value of each variable that only one atom has."""
    uses = Counter(variable for atom in query.atoms for variable in atom.variables)
    rows = dict(block.rows)
    for relation, schema in relations_of(query).items():
        for column, variable in enumerate(schema):
            mine = rows[relation]
            if uses[variable] == 1 and len(mine):
                rows[relation] = mine[mine[:, column] == mine[:, column].min()]
    return Block(f"{block.name}, thin", rows, rows if block.toggled else {})


def listed_slopes(report: Report, name: str, case: Listed, largest: int) -> None:
    """Operations for each update, on all instances; and of the view tree on the stars."""
    query = parse_rule(case.rule)
    check_rows(case, query)
    sizes = sizes_to(largest)
    ours, theirs = [], []
    for size in sizes:
        found = []
        for blocks in blocks_of(query, size, case.epsilon):
            database, view = made(case.rule, blocks)
            assert view.explain().epsilon == case.epsilon, view.explain()
            found += toggles(database, blocks)
            database.close()
        ours.append(dearest(found))
        report.line(f"{name}, peeled", size, ours[-1].operations, ours[-1].seconds, ours[-1].where)
        plain = stars(query, size)
        database, _ = made(case.rule, plain, strategy="view-tree")
        theirs.append(dearest(toggles(database, plain)))
        database.close()
    report.verdict(f"{name}, peeled", slope(sizes, [e.operations for e in ours]), most=case.promised + 0.1)
    report.verdict(f"{name}, view tree", slope(sizes, [e.operations for e in theirs]), least=case.tree - 0.1)


def check_rows(case: Listed, query: Query, size: int = 150) -> None:
    """Both strategies have the same rows, after toggles that leave some rows deleted."""
    for blocks in blocks_of(query, size, case.epsilon):
        views: list[object] = []
        for options in ({}, {"strategy": "classical"}):
            database, view = made(case.rule, blocks, **options)
            toggles(database, blocks)
            for relation, rows in blocks[0].toggled.items():
                database.delete(relation, rows[:3])
            views.append(sorted(view.items()))
        if views[0] != views[1]:
            raise AssertionError(f"{case.rule}: the plans differ on {[block.name for block in blocks]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max", type=int, default=100_000, help="the largest N")
    largest, report = parser.parse_args().max, Report()
    for name, case in LISTED.items():
        listed_slopes(report, name, case, largest)
    return int(report.broken)


if __name__ == "__main__":
    sys.exit(main())
