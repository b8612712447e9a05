"""The oracle is itself checked: against the source's example, against DuckDB, and under renaming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.query.model import Aggregate, Constant, Query, Value
from ivme.query.rule import parse_rule
from tests.example_counts import examples
from tests.oracle import Database, result, rows
from tests.random_queries import contents, queries, renamings, updates


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_the_triangle_count_of_the_poster_is_19_and_then_13() -> None:
    query = parse_rule("Q(COUNT) = R(A, B), S(B, C), T(C, A)")
    database = {
        "R": Counter({("a1", "b1"): 2, ("a2", "b1"): 3}),
        "S": Counter({("b1", "c1"): 2, ("b1", "c2"): 1}),
        "T": Counter({("c1", "a1"): 1, ("c2", "a1"): 3, ("c2", "a2"): 3}),
    }
    assert rows(query, database) == {(19,): 1}
    database["R"]["a2", "b1"] -= 2
    assert rows(query, database) == {(13,): 1}
    assert result(parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)"), database) == {(): 13}


def test_a_closure_has_paths_of_one_edge_or_more_each_pair_once() -> None:
    edges = {(1, 2): 3, (2, 3): 1, (3, 2): 1, (4, None): 1, (None, 5): 1}
    reached = result(parse_rule("Q(X, Y) = closure(edge)"), {"edge": edges})
    assert reached == dict.fromkeys([(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3), (4, None), (None, 5)], 1)


def test_an_aggregate_over_nothing_is_one_row_unless_it_is_grouped() -> None:
    assert rows(parse_rule("Q(COUNT, SUM(A), AVG(A), MIN(A) | B) = R(A, B)"), {}, {"B": 1}) == {
        (0, None, None, None): 1
    }
    assert rows(parse_rule("Q(B, COUNT) = R(A, B)"), {}) == {}


def test_a_sum_of_zero_is_a_group_and_a_sum_of_nulls_is_null() -> None:
    database = {"R": {(5, "x"): 1, (-5, "x"): 1, (None, "y"): 2}}
    assert rows(parse_rule("Q(B, SUM(A), COUNT(A), COUNT) = R(A, B)"), database) == {
        ("x", 0, 2, 2): 1,
        ("y", None, 0, 2): 1,
    }


def sql(query: Query) -> str:
    """The query as SQL with `$p` parameters; a table without columns has a dummy one there."""
    places: dict[str, list[str]] = {}
    conditions = []
    for number, atom in enumerate(query.atoms):
        for term, column in zip(atom.terms, atom.columns, strict=True):
            place = f't{number}."{column}"'
            if isinstance(term, Constant):
                conditions.append(f"{place} = {term}")
            else:
                places.setdefault(term, []).append(place)
    first = {variable: found[0] for variable, found in places.items()}
    conditions += [f"{found[0]} = {other}" for found in places.values() for other in found[1:]]
    conditions += [f"{first[variable]} = ${variable}" for variable in query.input]

    def selected(source: str | Aggregate) -> str:
        if isinstance(source, str):
            return first[source]
        if source.variable is None:
            return "COUNT(*)"
        return str(Aggregate(source.function, first[source.variable]))

    columns = ", ".join(selected(column.source) for column in query.head) or "1"
    tables = ", ".join(f"{atom.relation} AS t{number}" for number, atom in enumerate(query.atoms))
    text = f"SELECT {'DISTINCT ' if query.distinct else ''}{columns} FROM {tables}"
    text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    grouped = ", ".join(first[variable] for variable in query.output)
    return text + (f" GROUP BY {grouped}" if query.aggregates and grouped else "")


def duck_rows(
    duck: duckdb.DuckDBPyConnection, query: Query, database: Database, inputs: dict[str, Value]
) -> dict[tuple[Any, ...], int]:
    for table in query.tables:
        names = [f'"{name}" INTEGER' for name in table.column_names] or ["dummy INTEGER"]
        duck.execute(f"CREATE OR REPLACE TEMP TABLE {table.name} ({', '.join(names)})")
        stored = [row or (None,) for row, weight in database.get(table.name, {}).items() for _ in range(weight)]
        if stored:
            duck.executemany(f"INSERT INTO {table.name} VALUES ({', '.join('?' for _ in names)})", stored)
    found = Counter(duck.execute(sql(query), inputs).fetchall())
    return {row if query.head else (): weight for row, weight in found.items()}


@settings(max_examples=examples(500), deadline=None)
@given(
    queries(max_atoms=4, max_variables=4, constants=True) | queries(max_atoms=4, max_variables=4, aggregates=True),
    st.data(),
)
def test_the_oracle_agrees_with_duckdb(duck: duckdb.DuckDBPyConnection, query: Query, data: st.DataObject) -> None:
    database = contents(data.draw(updates(query, domain=2, nulls=True, max_size=16)))
    inputs = {parameter: data.draw(st.sampled_from((0, 1, 0, 1, None))) for parameter in query.parameters}
    assert rows(query, database, inputs) == duck_rows(duck, query, database, dict(inputs))


@given(queries(max_atoms=4, aggregates=True) | queries(max_atoms=4), st.data())
def test_a_renamed_query_has_the_same_result(query: Query, data: st.DataObject) -> None:
    renamed = data.draw(renamings(query))
    steps = data.draw(updates(query, max_size=12))
    elsewhere = [(renamed.relations[relation], row, weight) for relation, row, weight in steps]
    assert result(renamed.query, contents(elsewhere)) == result(query, contents(steps))


@given(queries(), st.data())
def test_no_update_makes_a_multiplicity_negative(query: Query, data: st.DataObject) -> None:
    present: Counter[tuple[str, tuple[Value, ...]]] = Counter()
    for relation, row, weight in data.draw(updates(query)):
        present[relation, row] += weight
        assert present[relation, row] >= 0
        assert len(row) == len(query.table(relation).columns)
