"""Where keys hold, a changed row costs what its table's bound says: operations counted over growing N.

Every database has a hub: one row of each dimension that all facts reference, so that its change touches N of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options
from ivme.query.model import Query, Table, table
from ivme.query.parse import parse
from ivme.structure.analysis import analyse
from tests.databases import BACKENDS, make_database

Row = tuple[Any, ...]
SMALL, LARGE = 250, 1000


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


def _query(case: Case) -> Query:
    found = parse(case.text, case.tables)
    assert isinstance(found, Query)
    return found


def _operations(case: Case, program: Any, size: int) -> dict[str, int]:
    kernel = Interpreter(program)
    kernel.build({name: dict.fromkeys(rows, 1) for name, rows in case.rows(size).items()})
    counted = {}
    for name, row in case.changed.items():
        most = 0
        for weight in (-1, 1):
            before = kernel.operations
            kernel.apply(name, {row: weight})
            most = max(most, kernel.operations - before)
        counted[name] = most
    return counted


@pytest.mark.parametrize("name", CASES)
def test_each_table_costs_what_its_bound_says(name: str) -> None:
    case = CASES[name]
    plan = choose(analyse(_query(case)), Options()).plan
    assert plan is not None
    assert plan.strategy == "view-tree"
    small, large = (_operations(case, plan.program, size) for size in (SMALL, LARGE))
    for cost in plan.updates:
        exponent = cost.update.exponent.at(Fraction(0))
        if exponent == 0:
            assert small[cost.table] == large[cost.table], cost.table
        else:
            slope = log(large[cost.table] / small[cost.table]) / log(LARGE / SMALL)
            assert slope == pytest.approx(float(exponent), abs=0.1), cost.table


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_the_operations_of_a_database_do_not_grow_where_a_table_costs_a_constant(name: str, backend: str) -> None:
    case = CASES[name]
    counted = []
    for size in (SMALL, LARGE):
        with make_database(backend) as database:
            for each in case.tables:
                types = {column.name: "int" for column in each.columns}
                database.create_table(each.name, types, primary_key=each.primary_key, unique=each.unique)
            for relation, rows in case.rows(size).items():
                database.insert(relation, rows)
            view = database.create_view("q", case.text)
            costs = view.explain().updates
            counted.append({each: _counted(database, view, each, case.changed[each]) for each in costs})
    for relation, cost in costs.items():
        if cost.exponent.at(Fraction(0)) == 0:
            assert counted[0][relation] == counted[1][relation] > 0, relation
        else:
            assert counted[1][relation] > 3 * counted[0][relation], relation


def _counted(database: Database, view: Any, relation: str, row: Row) -> int:
    """The operations that a delete of a row and its insert take."""
    before = view.stats()["operations"]
    database.delete(relation, [row])
    database.insert(relation, [row])
    return int(view.stats()["operations"] - before)


@pytest.mark.parametrize("name", CASES)
def test_maps_are_linear_where_space_is(name: str) -> None:
    case = CASES[name]
    plan = choose(analyse(_query(case)), Options()).plan
    assert plan is not None
    assert str(plan.space) == "O(N)"
    held = []
    for size in (SMALL, LARGE):
        kernel = Interpreter(plan.program)
        kernel.build({name: dict.fromkeys(rows, 1) for name, rows in case.rows(size).items()})
        held.append(sum(len(each) for each in kernel.kernel.maps.values()))
    assert held[1] <= 4.5 * held[0]
