"""Which rows a query leaves out because something fails, and what must have no row for it to be right."""

from __future__ import annotations

import pytest

from ivme.query.failures import as_count, failing_joins, with_failing_rows, without_failures
from ivme.query.model import Query, table
from ivme.query.sql import parse_sql

TABLES = [table("a", {"k": "int", "x": "int", "y": "int"}), table("b", {"k": "int", "x": "int", "y": "int"})]


def parsed(sql: str) -> Query:
    return parse_sql(sql, TABLES)


@pytest.mark.parametrize(
    ("sql", "atoms"),
    [
        ("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.y > 1", []),
        ("SELECT x / y AS q FROM a", []),
        ("SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k", [(0,)]),
        ("SELECT SUM(b.x / b.y) AS q FROM a JOIN b ON a.k = b.k", [(1,)]),
        ("SELECT a.x / a.y AS p, b.x / b.y AS q FROM a JOIN b ON a.k = b.k", [(0,), (1,)]),
        ("SELECT l.x / l.y AS p, r.x / r.y AS q FROM a l JOIN a r ON l.k = r.k", [(0,), (1,)]),
        ("SELECT a.k FROM a JOIN b ON a.x / a.y = b.k", [(0,)]),
        ("SELECT a.k FROM a JOIN b ON a.x / a.y = b.x / b.y", [(0,), (1,), (0, 1)]),
        ("SELECT a.k FROM a JOIN b ON a.x / a.y = b.k WHERE a.x + a.y > 1", [(0,), (0,)]),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.x / a.y = :q", [(0,)]),
    ],
)
def test_there_is_a_check_for_each_way_to_fail(sql: str, atoms: list[tuple[int, ...]]) -> None:
    assert atoms == [each.atoms for each in failing_joins(parsed(sql))]


def test_a_row_that_fails_passes_the_predicate_that_fails_and_no_other() -> None:
    query = parsed("SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.k > 1 AND a.x / a.y > 2 AND a.x < 5")
    (check,) = failing_joins(query)
    (first, _) = check.query.atoms
    guard = "(k > 1) AND (fails((x / y) > 2) OR ((x / y) > 2)) AND (x < 5) AND fails((x / y) > 2)"
    assert guard == str(first.where)
    sound = "(k > 1) AND (NOT fails((x / y) > 2)) AND ((x / y) > 2) AND (x < 5)"
    assert sound == str(without_failures(query).atoms[0].where)


def test_a_failing_key_is_no_key_of_the_check() -> None:
    (check,) = failing_joins(parsed("SELECT a.k FROM a JOIN b ON a.x / a.y = b.k"))
    first, second = check.query.atoms
    assert {"k"} == set(first.variables)
    assert 1 == len(second.variables)
    assert "fails(x / y)" == str(first.where)


def test_a_parameter_is_a_column_of_the_check_that_is_not_null() -> None:
    (check,) = failing_joins(parsed("SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.x = :x"))
    assert () == check.query.input
    assert "NOT (x IS NULL)" == str(check.query.atoms[1].where)


def test_a_check_has_the_sums_of_its_view_and_no_extremes() -> None:
    (check,) = failing_joins(
        parsed("SELECT MIN(b.x) AS m, SUM(a.x / a.y) AS s, COUNT(*) AS n FROM a JOIN b ON a.k = b.k")
    )
    assert ["sum", "count"] == [aggregate.function for aggregate in check.query.aggregates]
    counted = as_count(check.query)
    assert ["COUNT"] == [str(aggregate) for aggregate in counted.aggregates]
    assert [("k",), ("k",)] == [atom.variables for atom in counted.atoms]


def test_rows_that_fail_are_routed_with_null() -> None:
    query = parsed("SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE a.x + a.y > 0")
    first, second = with_failing_rows(query)
    assert "fails((x + y) > 0) OR ((x + y) > 0)" == str(first.where)
    assert "CASE WHEN NOT fails(x / y) THEN x / y END" in map(str, first.columns)
    assert query.atoms[1] == second


@pytest.mark.parametrize(("number", "checks"), [(1, 1), (2, 3), (3, 7), (4, 1)])
def test_many_keys_that_may_fail_have_one_check_for_each_atom(number: int, checks: int) -> None:
    keys = ["a.x / a.y", "a.y / a.x", "a.x / a.k", "a.k / a.x"][:number]
    query = parsed("SELECT a.k FROM a JOIN b ON a.k = b.k" + "".join(f" AND {key} = b.x / 2" for key in keys))
    assert checks == len(failing_joins(query))
