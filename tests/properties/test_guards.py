"""WHERE comes before SELECT, on every way a row can take: what a predicate drops is never computed with.

A random predicate and a random expression make a view; random rows come one by one, a few at a time, many at a time,
and before the view. Each way has evaluators of its own (rows of values, Arrow columns, codes), and all must give what
`evaluate` gives, or refuse what it refuses.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.errors import DataError, ExpressionError, IvmeError
from ivme.query.expression import ColumnRef, Expression, conjuncts, evaluate
from ivme.query.inference import type_of
from ivme.query.model import Aggregate, Atom, Query, plain_head, table
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples
from tests.random_expressions import ANYTHING, COLUMNS, NUMBERS, ROWS, as_shown, expressions, in_type

T = table("T", {"k": "int", **COLUMNS})
MANY = 20
"""More rows than are ever taken one by one."""


def view_of(expression: Expression, where: Expression) -> Query:
    atom = Atom("T", ("k", "value"), (ColumnRef("k"), expression), where)
    return Query("v", ("k", "value"), (), (atom,), (T,), plain_head(("k", "value")))


def sums_of(expression: Expression, where: Expression) -> Query:
    atom = Atom("T", ("k", "value"), (ColumnRef("k"), expression), where)
    return Query("sums", ("k",), (), (atom,), (T,), plain_head(("k",), [Aggregate("sum", "value")]))


def outcome(expression: Expression, where: Expression, row: dict[str, Any]) -> Any:
    """The row's value in a list, an empty list if the predicate drops it, or None if it is in error."""
    try:
        if evaluate(where, row) is not True:
            return []
        value = in_type(evaluate(expression, row), type_of(expression, T))
    except (DataError, OverflowError):
        return None
    return None if isinstance(value, float) and math.isnan(value) else [value]


def shown(pairs: Any) -> Counter[tuple[int, str]]:
    return Counter((k, as_shown([value])[0]) for k, value in pairs)


def stored(value: Any) -> Any:
    """A value as a table keeps it: there is no negative zero."""
    return value + 0.0 if isinstance(value, float) else value


def database(backend: str) -> Any:
    db = make_database(backend)
    db.create_table("T", {"k": "int", **COLUMNS})
    return db


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_a_predicate_guards_what_is_computed(backend: str, data: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    expression, where = data.draw(expressions(kind)), data.draw(expressions("bool"))
    if type_of(expression, T) is None:
        return
    listed = [{"k": k, **{name: stored(row[name]) for name in COLUMNS}} for k, row in enumerate(rows)]
    outcomes = [outcome(expression, where, row) for row in listed]
    good = [tuple(row.values()) for row, found in zip(listed, outcomes, strict=True) if found is not None]
    wanted = shown((row["k"], found[0]) for row, found in zip(listed, outcomes, strict=True) if found)

    one_by_one = database(backend)
    view = one_by_one.create_view("v", view_of(expression, where))
    views = [view, one_by_one.create_view("sums", sums_of(expression, where))] if kind in NUMBERS else [view]
    for row, found in zip(listed, outcomes, strict=True):
        if found is None:
            with pytest.raises(IvmeError):
                one_by_one.insert("T", [tuple(row.values())])
        else:
            one_by_one.insert("T", [tuple(row.values())])
    for each in views:
        assert shown(each) == wanted
        each.verify()

    together = database(backend)
    view = together.create_view("v", view_of(expression, where))
    if None in outcomes:
        with pytest.raises(DataError):
            together.insert("T", [tuple(row.values()) for row in listed])
        assert not list(view)
    together.insert("T", good)
    assert shown(view) == wanted
    together.insert("T", good * MANY)
    assert shown(view) == Counter({row: (MANY + 1) * n for row, n in wanted.items()})

    before = database(backend)
    before.insert("T", good)
    assert shown(before.create_view("v", view_of(expression, where))) == wanted


G = table("G", {"k": "int", "ok": "bool"})


def joined_with_guards(expression: Expression, where: Expression) -> Query:
    """The values of rows whose guard, a row of another table, lets them through."""
    rows = Atom("T", ("k", "value"), (ColumnRef("k"), expression), where)
    guards = Atom("G", ("k",), (ColumnRef("k"),), ColumnRef("ok"))
    return Query("v", ("k", "value"), (), (rows, guards), (T, G), plain_head(("k", "value")))


def is_seen_failing(expression: Expression, where: Expression, row: dict[str, Any]) -> bool:
    """Whether something fails for a row that no predicate drops: one that fails itself drops nothing."""
    failed = False
    for test in conjuncts(where):
        try:
            if evaluate(test, row) is not True:
                return False
        except DataError:
            failed = True
    return failed or outcome(expression, where, row) is None


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_another_table_guards_what_is_computed(backend: str, data: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    expression, where = data.draw(expressions(kind)), data.draw(expressions("bool"))
    if type_of(expression, T) is None:
        return
    listed = [{"k": k, **{name: stored(row[name]) for name in COLUMNS}} for k, row in enumerate(rows)]
    listed = [row for row in listed if not is_nan(expression, row)]
    failing = {row["k"] for row in listed if is_seen_failing(expression, where, row)}
    hidden = {row["k"]: data.draw(st.booleans()) for row in listed}
    wanted = shown(
        (row["k"], (outcome(expression, where, row) or [None])[0])
        for row in listed
        if not hidden[row["k"]] and row["k"] not in failing and outcome(expression, where, row)
    )
    good = [tuple(row.values()) for row in listed if hidden[row["k"]] or row["k"] not in failing]

    db = database(backend)
    db.create_table("G", {"k": "int", "ok": "bool"})
    view = db.create_view("v", joined_with_guards(expression, where))
    db.insert("G", [(k, not is_hidden) for k, is_hidden in hidden.items()])
    for row in listed:
        if row["k"] in failing and not hidden[row["k"]]:
            with pytest.raises(ExpressionError, match="view v: "):
                db.insert("T", [tuple(row.values())])
        else:
            db.insert("T", [tuple(row.values())])
    assert wanted == shown(view)
    view.verify()
    for k in failing & {k for k, is_hidden in hidden.items() if is_hidden}:
        with pytest.raises(ExpressionError, match=rf"the row \({k},"):
            db.insert("G", [(k, True)])
    db.insert("T", good * MANY)
    assert shown(view) == Counter({row: (MANY + 1) * n for row, n in wanted.items()})
    db.drop_view("v")
    again = db.create_view("v", joined_with_guards(expression, where))
    assert shown(again) == Counter({row: (MANY + 1) * n for row, n in wanted.items()})
    db.delete("T", good * (MANY + 1))
    db.insert("G", [(k, True) for k in hidden])
    assert not list(again)


def is_nan(expression: Expression, row: dict[str, Any]) -> bool:
    """Whether a value is computed that no column holds: such a row is refused, whoever would see it."""
    try:
        value = evaluate(expression, row)
    except DataError:
        return False
    return isinstance(value, float) and math.isnan(value)
