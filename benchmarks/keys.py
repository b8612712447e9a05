"""What a changed row costs each table where keys hold: operations counted over growing N.

    python -m benchmarks.keys

Every database has a hub: one row of each dimension that all facts reference, so that its change touches N of them. The
rows of the hub are deleted and inserted again, on the view tree that is chosen, and the operations are held against the
bound of their table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.assemble.plan import Plan
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options
from ivme.query.model import Query, Table, table
from ivme.query.parse import parse
from ivme.structure.analysis import analyse

SIZES = (1_000, 4_000, 16_000)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A query over keys, its rows at a size, and a row of each table whose change is to be counted."""

    text: str
    tables: tuple[Table, ...]
    rows: Callable[[int], dict[str, list[Row]]]
    changed: dict[str, Row]


CASES = {
    "flights": Case(
        """SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id
           WHERE a.city = :origin AND b.city = :dest""",
        (
            table("flights", {"no": "int", "src": "int", "dst": "int"}),
            table("airports", {"id": "int", "city": "int"}, primary_key="id"),
        ),
        lambda n: {"flights": [(i, 0, i) for i in range(n)], "airports": [(i, i % 7) for i in range(n)]},
        {"flights": (0, 0, 0), "airports": (0, 0)},
    ),
    "orders by city": Case(
        "SELECT c.city, SUM(o.price) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city",
        (
            table("orders", {"id": "int", "customer": "int", "price": "int"}, primary_key="id"),
            table("customers", {"id": "int", "city": "int"}, primary_key="id"),
        ),
        lambda n: {"orders": [(i, 0, i) for i in range(n)], "customers": [(i, 0) for i in range(n)]},
        {"orders": (0, 0, 0), "customers": (0, 0)},
    ),
    "star by two attributes": Case(
        """SELECT s.x, t.y, COUNT(*) AS n FROM f JOIN s ON f.a = s.a JOIN t ON f.b = t.b GROUP BY s.x, t.y""",
        (
            table("f", {"a": "int", "b": "int"}),
            table("s", {"a": "int", "x": "int"}, primary_key="a"),
            table("t", {"b": "int", "y": "int"}, primary_key="b"),
        ),
        lambda n: {
            "f": [(0, i) for i in range(1, n)] + [(i, 0) for i in range(n)],
            "s": [(i, i) for i in range(n)],
            "t": [(i, i) for i in range(n)],
        },
        {"f": (0, 0), "s": (0, 0), "t": (0, 0)},
    ),
    "snowflake": Case(
        """SELECT n.name, SUM(l.price) AS total FROM lines l JOIN orders o ON l.o = o.id
           JOIN customers c ON o.c = c.id JOIN nations n ON c.n = n.id GROUP BY n.name""",
        (
            table("lines", {"o": "int", "number": "int", "price": "int"}, primary_key=("o", "number")),
            table("orders", {"id": "int", "c": "int"}, primary_key="id"),
            table("customers", {"id": "int", "n": "int"}, primary_key="id"),
            table("nations", {"id": "int", "name": "int"}, primary_key="id"),
        ),
        lambda n: {
            "lines": [(i, 1, 5) for i in range(n)],
            "orders": [(i, 0) for i in range(n)],
            "customers": [(i, 0) for i in range(n)],
            "nations": [(i, 0) for i in range(n)],
        },
        {"lines": (0, 1, 5), "orders": (0, 0), "customers": (0, 0), "nations": (0, 0)},
    ),
    "the reduct lies": Case(
        "SELECT COUNT(*) AS n FROM r JOIN s ON r.v = s.v JOIN g ON r.k = g.k AND s.y = g.y",
        (
            table("r", {"k": "int", "v": "int"}),
            table("s", {"y": "int", "v": "int"}),
            table("g", {"k": "int", "y": "int"}, primary_key="k", unique=["y"]),
        ),
        lambda n: {
            "r": [(0, i) for i in range(n)] + [(i, 0) for i in range(1, n)],
            "s": [(0, i) for i in range(n)] + [(i, 0) for i in range(1, n)],
            "g": [(i, i) for i in range(n)],
        },
        {"r": (0, 0), "s": (0, 0), "g": (0, 0)},
    ),
}


def chosen(case: Case) -> Plan:
    """The plan that is chosen for a case."""
    query = parse(case.text, case.tables)
    assert isinstance(query, Query)
    plan = choose(analyse(query), Options()).plan
    assert plan is not None
    return plan


def built(case: Case, plan: Plan, size: int) -> Interpreter:
    """The view over the rows of a size."""
    kernel = Interpreter(plan.program)
    kernel.build({name: dict.fromkeys(rows, 1) for name, rows in case.rows(size).items()})
    return kernel


def operations(case: Case, plan: Plan, size: int) -> dict[str, int]:
    """The operations that a delete or an insert of the hub's row takes at most, by table."""
    kernel = built(case, plan, size)
    counted = {}
    for name, row in case.changed.items():
        most = 0
        for weight in (-1, 1):
            before = kernel.operations
            kernel.apply(name, {row: weight})
            most = max(most, kernel.operations - before)
        counted[name] = most
    return counted


def main() -> int:
    """Prints a table of all measurements; exits with 1 if one grows faster than promised."""
    late = False
    print(f"{'query':<24} {'table':<10} {'N':>7} {'operations':>11} {'slope':>6}  promised")
    for name, case in CASES.items():
        plan = chosen(case)
        counted = [operations(case, plan, size) for size in SIZES]
        for cost in plan.updates:
            before, after = (each[cost.table] for each in counted[-2:])
            slope = log(after / before) / log(SIZES[-1] / SIZES[-2])
            promised = cost.update.exponent.at(Fraction(0))
            late |= slope > promised + Fraction(1, 10)
            print(f"{name:<24} {cost.table:<10} {SIZES[-1]:>7} {after:>11} {slope:>6.2f}  {promised}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
