"""The query model refuses what contradicts itself, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from ivme.errors import SchemaError
from ivme.query.expression import Call, ColumnRef, Literal
from ivme.query.model import (
    Aggregate,
    Atom,
    Column,
    Constant,
    HeadColumn,
    Query,
    Table,
    Value,
    column_refs,
    plain_head,
    table,
)
from ivme.query.types import Type

R = table("R", ["a", "b"])
S = table("S", {"b": "int", "c": "decimal(5, 2)"}, primary_key="b", distinct={"c": 7})


def path(**changes: Any) -> Query:
    """`Q(A | C) = R(A, B), S(B, C)`, with some of its parts replaced."""
    atoms = (Atom("R", ("A", "B"), column_refs("ab")), Atom("S", ("B", "C"), column_refs("bc")))
    parts: dict[str, Any] = {
        "name": "Q",
        "output": ("A",),
        "input": ("C",),
        "atoms": atoms,
        "tables": (R, S),
        "head": plain_head("A"),
    }
    return Query(**(parts | changes))


def test_free_and_bound_variables_are_told_apart() -> None:
    query = path()
    assert query.variables == ("A", "B", "C")
    assert query.free == ("C", "A")
    assert query.bound == ("B",)
    assert query.parameters == ("C",)


def test_a_query_prints_as_a_rule() -> None:
    assert str(path()) == "Q(A | C) = R(A, B), S(B, C)"
    assert str(path(input=(), head=plain_head("A", [Aggregate("sum", "C"), Aggregate("count")]))) == (
        "Q(A, SUM(C), COUNT | .) = R(A, B), S(B, C)"
    )


def test_a_declared_table_knows_its_columns_by_any_case() -> None:
    assert S.column("C") == Column("c", Type("decimal", 5, 2))
    assert S.column("d") is None
    assert (S.primary_key, S.distinct) == (("b",), (("c", 7),))


def test_a_repeated_relation_is_a_self_join_but_its_closure_is_another_relation() -> None:
    edge = Atom("R", ("A", "B"), column_refs("ab"))
    assert not path().has_self_joins
    assert path(input=(), atoms=(edge, edge)).has_self_joins
    assert not path(input=(), atoms=(edge, replace(edge, closure=True))).has_self_joins


def test_better_known_tables_replace_those_of_the_same_name() -> None:
    keyed = replace(R, primary_key=("a",))
    assert path().with_tables([keyed]).tables == (keyed, S)
    assert path().with_tables([keyed]).table("R") is keyed


def test_constants_print_as_rule_notation_reads_them() -> None:
    values: list[Value] = [3, Decimal("1.50"), "it's", True, False, None]
    assert list(map(str, map(Constant, values))) == ["3", "1.50", "'it''s'", "TRUE", "FALSE", "NULL"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: path(atoms=()), "no atoms"),
        (lambda: path(output=("A", "A")), "variable A occurs twice"),
        (lambda: path(output=("A", "C")), "variable C occurs twice"),
        (lambda: path(output=("A", "Z")), "variable Z is in the head"),
        (lambda: path(parameters=("p", "q")), "1 inputs but 2 parameters"),
        (lambda: path(head=plain_head("AA")), "two columns of Q are named 'A'"),
        (lambda: path(head=(HeadColumn("b", "B"),)), "column b of Q is not a free variable"),
        (lambda: path(head=plain_head("A", [Aggregate("max", "Z")])), r"MAX\(Z\) in Q is over a variable"),
        (lambda: path(head=plain_head("A", [Aggregate("count")]), distinct=True), "both DISTINCT and aggregates"),
        (lambda: path(tables=(R,)), "does not describe the table S"),
        (lambda: path(tables=(R, S, S)), "describes a table twice"),
        (lambda: path(tables=(R, table("S", ["b"]))), "table S has no column 'c'"),
        (lambda: Atom("R", ("A",), column_refs("ab")), "1 terms for 2 columns"),
        (lambda: Atom("R", ("A",), column_refs("a"), closure=True), "has two columns, not 1"),
        (lambda: Aggregate("median", "A"), "unknown aggregate 'median'"),
        (lambda: Aggregate("sum"), "SUM needs an argument"),
        (lambda: Table("", ()), "needs a name"),
        (lambda: table("R", ["a", "A"]), "two columns named 'a'"),
        (lambda: table("R", ["a"], primary_key="k"), "no column 'k'"),
        (lambda: table("R", ["a"], static=True, append_only=True), "both static and append-only"),
        (lambda: table("R", {"a": "quux"}), "unknown type 'quux'"),
    ],
)
def test_what_contradicts_itself_is_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        make()


def test_a_predicate_over_a_column_that_is_not_there_is_refused() -> None:
    large = Call("gt", (ColumnRef("z"), Literal(3)))
    with pytest.raises(SchemaError, match="table R has no column 'z'"):
        path(input=(), atoms=(Atom("R", ("A",), column_refs("a"), where=large),))
