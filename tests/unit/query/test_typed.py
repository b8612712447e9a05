"""Queries as the kernel wants them."""

from __future__ import annotations

import pytest

from ivme.errors import SchemaError
from ivme.query.expression import Call, ColumnRef, evaluate
from ivme.query.model import table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.query.typed import typed

R = table("R", {"a": "int", "b": "string", "d": "decimal(10, 2)", "f": "float"})
S = table("S", {"x": "decimal(12, 1)", "i": "int"})


def test_constants_become_predicates() -> None:
    ready = typed(parse_rule("Q(A) = R(A, 'x', D, F)", (R,)))
    (atom,) = ready.query.atoms
    assert atom.terms == ("A", "D", "F")
    assert atom.where is not None
    assert [evaluate(atom.where, {"b": value}) for value in ("x", "y", None)] == [True, False, None]


def test_columns_that_join_are_cast_to_the_type_they_have_in_common() -> None:
    ready = typed(parse_sql("SELECT S.i FROM R JOIN S ON R.a = S.x", (R, S)))
    variable = next(term for term in ready.query.atoms[0].terms if term in ready.query.atoms[1].terms)
    assert str(ready.types[str(variable)]).startswith("decimal(")
    kinds = [type(atom.columns[atom.terms.index(variable)]) for atom in ready.query.atoms]
    assert Call in kinds
    same = typed(parse_sql("SELECT S.i FROM R JOIN S ON R.a = S.i", (R, S)))
    assert all(isinstance(column, ColumnRef) for atom in same.query.atoms for column in atom.columns)


def test_slots_have_the_types_of_what_is_summed() -> None:
    text = "SELECT SUM(a) AS s, AVG(d) AS m, SUM(f) AS t, COUNT(b) AS n, MIN(b) AS l FROM R"
    assert typed(parse_sql(text, (R,))).slots == ("i64", "i128", "i64", "d128", "i64", "f64", "i64")


@pytest.mark.parametrize("function", ["SUM", "AVG"])
def test_sums_over_strings_are_refused(function: str) -> None:
    with pytest.raises(SchemaError, match="string"):
        typed(parse_rule(f"Q(A, {function}(B)) = R(A, B, D, F)", (R,)))
