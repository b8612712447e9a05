"""Where keys hold, a changed row costs what its table's bound says: operations counted over growing N.

The databases are those of benchmarks.keys: each dimension has a row that all facts reference.
"""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import pytest

from benchmarks.keys import CASES, Row, built, chosen, operations
from ivme.database import Database
from tests.databases import BACKENDS, make_database

SMALL, LARGE = 250, 1000


@pytest.mark.parametrize("name", CASES)
def test_each_table_costs_what_its_bound_says(name: str) -> None:
    case = CASES[name]
    plan = chosen(case)
    assert plan.strategy == "view-tree"
    small, large = (operations(case, plan, size) for size in (SMALL, LARGE))
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
    plan = chosen(case)
    assert str(plan.space) == "O(N)"
    small, large = (sum(map(len, built(case, plan, size).kernel.maps.values())) for size in (SMALL, LARGE))
    assert large <= 4.5 * small
