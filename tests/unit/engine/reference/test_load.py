"""From rows to tuples: constants, repeated variables, predicates, NULLs, lifts."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.engine.reference.indexed_map import Tally
from ivme.engine.reference.load import load, reader
from ivme.errors import DataError
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.ir.program import Source
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def source(query: Query | str) -> Source:
    """The source of the query's first atom."""
    query = parse_rule(query) if isinstance(query, str) else query
    return leaves_of(query, fracture(cqap_of(query))).sources[0][1]


def loaded(query: Query | str, changes: dict[Any, int]) -> dict[Any, Any]:
    return load(source(query), changes, Tally())


def test_a_constant_keeps_the_rows_that_have_it_and_is_no_column() -> None:
    assert loaded("Q(A) = R(A, 'x')", {(1, "x"): 2, (1, "y"): 5, (2, None): 1}) == {(1,): 2}


def test_a_repeated_variable_keeps_the_rows_whose_columns_agree() -> None:
    assert loaded("Q(A, B) = R(A, A, B)", {(1, 1, 5): 1, (1, 2, 5): 1, (None, None, 5): 1}) == {(1, 5): 1}


def test_a_row_with_null_where_variables_join_does_not_pass() -> None:
    assert loaded("Q(A, B) = R(A, B), S(B)", {(1, 2): 1, (1, None): 1}) == {(1, 2): 1}


def test_a_row_with_null_where_nothing_joins_passes() -> None:
    assert loaded("Q(A, B) = R(A, B)", {(1, None): 1, (None, None): 2}) == {(1, None): 1, (None, None): 2}


def test_an_input_never_takes_null() -> None:
    assert loaded("Q(B | A) = R(A, B)", {(1, None): 1, (None, 3): 1}) == {(1, None): 1}


def test_rows_that_become_one_tuple_are_added_up_and_vanish_if_they_cancel() -> None:
    tables = [table("r", {"a": "int", "b": "int"})]
    query = parse_sql("SELECT a FROM r", tables)
    assert loaded(query, {(1, 7): 1, (1, 8): 2, (2, 7): 1, (2, 8): -1}) == {(1,): 3}


def test_a_weight_of_zero_is_no_change() -> None:
    assert loaded("Q(A) = R(A)", {(1,): 0}) == {}


def test_a_predicate_that_is_null_keeps_nothing() -> None:
    tables = [table("r", {"a": "int", "b": "int"})]
    query = parse_sql("SELECT a FROM r WHERE b > 3", tables)
    assert loaded(query, {(1, 4): 1, (2, 3): 1, (3, None): 1}) == {(1,): 1}


def test_a_computed_column_is_computed_and_columns_are_found_whatever_their_case() -> None:
    tables = [table("r", {"Key": "int", "Value": "int"})]
    query = parse_sql("SELECT r.KEY, SUM(r.VALUE * 2) AS s FROM r GROUP BY r.key", tables)
    (row,) = loaded(query, {(1, 21): 1}).items()
    assert row == ((1, 42), (1, 1, 42))


def test_what_cannot_be_computed_is_a_data_error() -> None:
    tables = [table("r", {"a": "int", "b": "int"})]
    query = parse_sql("SELECT a FROM r WHERE 10 / b > 1", tables)
    with pytest.raises(DataError, match="fails: "):
        loaded(query, {(1, 5): 1, (2, 0): 1})


def test_a_lift_multiplies_the_value_by_the_weight() -> None:
    assert loaded("Q(A, SUM(X)) = R(A, X)", {(1, 5): 3}) == {(1, 5): (3, 3, 15)}
    assert loaded("Q(A, SUM(X)) = R(A, X)", {(1, 5): -3}) == {(1, 5): (-3, -3, -15)}


def test_a_null_adds_to_no_sum_and_to_no_count_of_values() -> None:
    assert loaded("Q(A, SUM(X)) = R(A, X)", {(1, None): 2}) == {(1, None): (2, 0, 0)}


def test_a_slot_that_another_leaf_lifts_stays_zero() -> None:
    """R lifts X, S lifts Y."""
    assert loaded("Q(A, SUM(X), SUM(Y)) = R(A, X), S(A, Y)", {(1, 5): 1}) == {(1, 5): (1, 1, 5, 0, 0)}


def test_each_row_read_is_one_operation_whether_it_passes_or_not() -> None:
    tally = Tally()
    load(source("Q(A) = R(A, 'x')"), {(1, "x"): 1, (1, "y"): 1}, tally)
    assert tally.operations == 2


def test_a_reader_gives_the_tuple_of_a_row_or_none() -> None:
    read = reader(source("Q(B, A) = R(A, 3, B), S(A)"))
    assert read((1, 3, 2)) == (1, 2)
    assert read((1, 4, 2)) is None
    assert read((None, 3, 2)) is None
