"""A row that passes a filter, found by trial: what no trial finds counts as a filter that nothing passes.

Sound and incomplete, as a lower bound needs it: a witness is checked by evaluating the filter on it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice, product
from typing import Any

from ivme.errors import DataError
from ivme.query.expression import Call, Expression, Literal, columns_of, conjunction, evaluate
from ivme.query.model import Table
from ivme.query.types import Type

TRIALS = 300
"""How many rows are tried for the conditions that have columns in common."""

_DEFAULTS = (0, 1, "a", True, False, datetime.date(2000, 1, 1))


def witness(where: Expression, table: Table) -> dict[str, Any] | None:
    """Values without NULL for the columns of a filter under which it is true; None if none was found.

    >>> from ivme.query.expression import ColumnRef
    >>> from ivme.query.model import table
    >>> z = ColumnRef("z")
    >>> witness(Call("gt", (z, Literal(3))), table("r", {"z": "int"}))
    {'z': 4}
    >>> witness(Call("ne", (z, z)), table("r", {"z": "int"})) is None
    True
    """
    found: dict[str, Any] = {}
    for names, conditions in _groups(_conjuncts(where)):
        row = _tried(names, conditions, table)
        if row is None:
            return None
        found |= row
    return found


def _conjuncts(where: Expression) -> Iterator[Expression]:
    if isinstance(where, Call) and where.function == "and":
        for argument in where.arguments:
            yield from _conjuncts(argument)
    else:
        yield where


def _groups(conditions: Iterable[Expression]) -> list[tuple[list[str], list[Expression]]]:
    """The conditions, those with columns in common together, and their columns."""
    groups: list[tuple[list[str], list[Expression]]] = []
    for condition in conditions:
        names, together = [*columns_of(condition)], [condition]
        joined = [group for group in groups if not set(names).isdisjoint(group[0])]
        groups = [group for group in groups if group not in joined]
        for columns, others in joined:
            names, together = columns + names, others + together
        groups.append((list(dict.fromkeys(names)), together))
    return groups


def _tried(names: list[str], conditions: list[Expression], table: Table) -> dict[str, Any] | None:
    where = conjunction(conditions)
    assert where is not None
    variants = [value for literal in _literals(where) for value in _variants(literal)]
    columns = [table.column(name) for name in names]
    choices = [[*_fitting(None if column is None else column.type, variants)] for column in columns]
    for values in islice(product(*choices), TRIALS):
        row = dict(zip(names, values, strict=True))
        try:
            if evaluate(where, row) is True:
                return row
        except DataError:
            continue
    return None


def _literals(expression: Expression) -> Iterator[Any]:
    if isinstance(expression, Literal):
        yield expression.value
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _literals(argument)


def _variants(value: Any) -> Iterator[Any]:
    """A constant of the filter and its neighbours: what `=`, `<`, `>`, `<>` and LIKE may want."""
    if isinstance(value, bool) or value is None:
        return
    yield value
    if isinstance(value, int | float | Decimal):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield from (value + "a", value.replace("%", "").replace("_", "a"))
    elif isinstance(value, datetime.date) and 1 < value.year < datetime.MAXYEAR:
        yield from (value + datetime.timedelta(days=1), value - datetime.timedelta(days=1))


def _fitting(kind: Type | None, variants: list[Any]) -> Iterator[Any]:
    """The candidates as values of a column's type; any value will do for an undeclared column."""
    for value in (*variants, *_DEFAULTS):
        if kind is None or (kind.kind == "binary" and isinstance(value, bytes)):
            yield value
        elif kind.kind != "binary" and not kind.is_nested:
            scale = (Literal(kind.precision), Literal(kind.scale)) if kind.kind == "decimal" else ()
            try:
                yield evaluate(Call(f"cast_{kind.kind}", (Literal(value), *scale)), {})
            except DataError:
                continue
