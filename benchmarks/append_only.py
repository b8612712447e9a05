"""Do tables that only grow cost N^(w-1) an insert, amortised, for cyclic joins? Operations counted over growing N.

    python -m benchmarks.append_only [--max 32000] [--only NAME]

Each join is listed in full over append-only tables, and filled row by row in a random order with what hurts: the
packing, in which each variable has N^(1/2) values, of Loomis-Whitney joins N^(1/3), and each table all tuples of them,
so that the cyclic parts of the result are as large as they can be; and hubs, in which one value of each variable meets
all values of its neighbours. What counts is the mean of the operations of all inserts, and its slope between the last
two sizes. Rows of the hub that come again and again are tried, too. Answers are compared with another strategy's at the
smallest size. Exits with 1 if a slope is more than 0.1 above the promised exponent.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from math import isnan, log

from ivme.database import Database
from ivme.query.model import Query
from ivme.query.rule import parse_rule

JOINS = {
    "triangle": "Q(A,B,C) = R(A,B), S(B,C), T(C,A)",
    "lollipop": "Q(A,B,C,D) = R(A,B), S(B,C), T(C,A), U(A,D)",
    "diamond": "Q(A,B,C,D) = R(A,B), S(B,C), T(C,D), U(D,A), V(A,C)",
    "bowtie": "Q(A,B,C,D,E) = R(A,B), S(B,C), T(C,A), U(A,D), V(D,E), W(E,A)",
    "Loomis-Whitney 4": "Q(A,B,C,D) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)",
    "4-cycle": "Q(A,B,C,D) = R(A,B), S(B,C), T(C,D), U(D,A)",
    "5-cycle": "Q(A,B,C,D,E) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,A)",
    "6-cycle": "Q(A,B,C,D,E,F) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,A)",
    "K4": "Q(A,B,C,D) = R(A,B), S(B,C), T(C,D), U(D,A), V(A,C), W(B,D)",
}
MOST_WORK = 60_000_000
"""A size whose inserts may take more operations than this in all is left out."""

Rows = list[tuple[str, tuple[int, ...]]]


def packed(query: Query, size: int) -> Rows:
    """All tuples over N^x values of each variable, at most N in each table."""
    width = len(query.atoms[0].variables)  # of all atoms
    values = range(max(1, int(size ** (1 / width) + 1e-9)))
    return [(atom.relation, row) for atom in query.atoms for row in product(values, repeat=width)]


def hubs(query: Query, size: int) -> Rows:
    """For each atom and each of its columns, the value 0 there with as many values in the others as fit."""
    rows: dict[tuple[str, tuple[int, ...]], None] = {}
    for atom in query.atoms:
        width = len(atom.variables)
        for place in range(width):
            each = max(1, int((size / width) ** (1 / (width - 1))))
            for rest in product(range(each), repeat=width - 1):
                rows[atom.relation, (*rest[:place], 0, *rest[place:])] = None
    return list(rows)


def again(query: Query, size: int) -> Rows:
    """The hubs, and then the same row of each table again and again."""
    rows = hubs(query, size // 2)
    return [*rows, *((atom.relation, (0,) * len(atom.variables)) for atom in query.atoms for _ in range(size // 2))]


INSTANCES: dict[str, Callable[[Query, int], Rows]] = {"packing": packed, "hubs": hubs, "again": again}


def inserted(text: str, rows: Rows, strategy: str | None = None) -> tuple[Database, float]:
    """A database that the rows were inserted into one by one, and the mean operations of an insert."""
    db = Database(replan=False)
    for table in parse_rule(text).tables:
        db.create_table(table.name, dict.fromkeys(table.column_names, "int"), append_only=True)
    db.create_view("joined", text, **({} if strategy is None else {"strategy": strategy}))
    order = random.Random(1).sample(rows, len(rows))
    backend = db.definitions.runtime.backend
    before = backend.operations
    for name, row in order:
        db.insert(name, [row])
    return db, (backend.operations - before) / max(1, len(order))


def check(text: str, rows: Rows) -> None:
    """The rows of the view by its own plan, and by view trees, are the same."""
    mine, others = (sorted(inserted(text, rows, each)[0].view("joined")) for each in (None, "view-tree"))
    assert mine == others, "the answers differ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max", type=int, default=32_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    bad = False
    for name, text in JOINS.items():
        if given.only not in name:
            continue
        query = parse_rule(text)
        for kind, instance in INSTANCES.items():
            check(text, instance(query, 60))
            bad |= measured(f"{name}, {kind}", text, partial(instance, query), given.max)
    sys.exit(bad)


def measured(what: str, text: str, instance: Callable[[int], Rows], largest: int) -> bool:
    """Prints the operations by size; whether their slope is too steep."""
    sizes, means, promised, plan = [], [], Fraction(0), None
    size = 250
    while size <= largest:
        db, mean = inserted(text, instance(size))
        explained = db.view("joined").explain()
        promised, plan = explained.update.exponent.at(Fraction(1, 2)), explained.strategy
        sizes.append(size)
        means.append(mean)
        grown = 2.0 ** (1 + float(promised))
        if mean * size * len(parse_rule(text).atoms) * grown * grown > MOST_WORK:
            break
        size *= 4
    slope = log(means[-1] / means[-2]) / log(sizes[-1] / sizes[-2]) if len(sizes) > 1 else float("nan")
    told = ", ".join(f"{n:,}: {mean:,.0f}" for n, mean in zip(sizes, means, strict=True))
    is_bad = isnan(slope) or slope > float(promised) + 0.1
    print(
        f"{what:28} {plan:10} promised N^{promised}, slope {slope:.2f}{' TOO STEEP' if is_bad else ''}  ({told})",
        flush=True,
    )
    return is_bad


if __name__ == "__main__":
    main()
