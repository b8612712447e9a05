"""Aggregates of a parsed query as Spark's SQL: those that ivme maintains under names of its own are spelled out.

Keys (`query/order_key.py`) are structs there, which Spark compares field by field, NULLs first.
"""

from __future__ import annotations

from typing import Any

from ivme.query.aggregates import is_joint
from ivme.query.expression import Call, Expression, Literal
from ivme.query.model import Aggregate

_DISTINCT = "_distinct"


def is_key(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "order_key"


def key_text(expression: Expression) -> str:
    """A key as a struct; NULL if a part is that must not be."""
    assert isinstance(expression, Call)
    form, *parts = expression.arguments
    assert isinstance(form, Literal)
    letters = _letters(form.value)
    needed = [f"({part}) IS NOT NULL" for (_, is_needed), part in zip(letters, parts, strict=True) if is_needed]
    fields = ", ".join(f"'p{number}', {part}" for number, part in enumerate(parts))
    return f"CASE WHEN {' AND '.join(needed) or 'TRUE'} THEN named_struct({fields}) END"


def aggregate_text(aggregate: Aggregate) -> str:
    """An aggregate over columns that are named as the query's variables."""
    if aggregate.variable is None:
        return "count(1)"
    column, function, options = _quoted(aggregate.variable), aggregate.function, aggregate.options
    if is_joint(aggregate):
        return f"{function.removesuffix('_product')}({column} * {_quoted(str(aggregate.partner))})"
    if aggregate.partner is not None:
        return f"{function}({column}, {_quoted(aggregate.partner)})"
    if function.endswith(_DISTINCT):
        return f"{function.removesuffix(_DISTINCT)}(DISTINCT {column})"
    match function:
        case "count_distinct":
            return f"count(DISTINCT {column})"
        case "bool_and":
            return f"min({column}) = 1"
        case "bool_or":
            return f"max({column}) = 1"
        case "squared_deviations":
            return f"var_pop({column}) * count({column})"
        case "max_by" | "min_by":
            return f"{function[:3]}({column}).p{len(_letters(options[0])) - 1}"
        case "percentile_cont" | "percentile_disc":
            return f"{function}({options[0]!s}) WITHIN GROUP (ORDER BY {column}{_direction(options[1])})"
        case "mode":
            return f"mode() WITHIN GROUP (ORDER BY {column}{_direction(options[0])})"
        case "string_agg":
            return _string_agg(column, *options)
        case "array_agg":
            return _array_agg(column, *options)
    return f"{function}({column})"


def _string_agg(column: str, separator: Any, form: Any, is_distinct: Any) -> str:
    text, order = column, column
    if form:
        letters = _letters(form)
        text = f"{column}.p{len(letters) - 1}"
        parts = [f"{column}.p{i}{_direction(each in 'dD')}{_nulls(each)}" for i, (each, _) in enumerate(letters)]
        order = f"{text}{_direction(form[0] in 'dD')}" if is_distinct else ", ".join(parts)
    return f"listagg({'DISTINCT ' if is_distinct else ''}{text}, {Literal(separator)}) WITHIN GROUP (ORDER BY {order})"


def _array_agg(column: str, form: Any, is_distinct: Any) -> str:
    """An array in the order that ivme gives it: that of the values, or of the keys."""
    values = f"{'collect_set' if is_distinct else 'collect_list'}({column})"
    if not form:
        return f"sort_array({values})"
    letters = _letters(form)
    compared = " ".join(_compared(f"p{i}", letter) for i, (letter, _) in enumerate(letters))
    sorted_keys = f"array_sort({values}, (l, r) -> CASE {compared} ELSE 0 END)"
    return f"transform({sorted_keys}, k -> k.p{len(letters) - 1})"


def _compared(field: str, letter: str) -> str:
    """The branches of a comparison of two keys by one of their fields."""
    less, more = ("1", "-1") if letter in "dD" else ("-1", "1")
    first, last = ("1", "-1") if letter.isupper() else ("-1", "1")
    return (
        f"WHEN l.{field} IS NULL AND r.{field} IS NOT NULL THEN {first} "
        f"WHEN l.{field} IS NOT NULL AND r.{field} IS NULL THEN {last} "
        f"WHEN l.{field} < r.{field} THEN {less} WHEN l.{field} > r.{field} THEN {more}"
    )


def _letters(form: Any) -> list[tuple[str, bool]]:
    """The letters of a key's form, each with whether its part must not be NULL."""
    return [(letter, form[i + 1 : i + 2] == "!") for i, letter in enumerate(form) if letter != "!"]


def _direction(is_descending: Any) -> str:
    return " DESC" if is_descending else ""


def _nulls(letter: str) -> str:
    return " NULLS LAST" if letter.isupper() else " NULLS FIRST"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
