"""Filters of Spark that are applied where the rows of a view are: as plain data, and to Arrow.

Only what means the same here and there is taken: comparisons of whole numbers, decimals, texts, truth values, dates and
timestamps. Those of floats stay with Spark, for which NaN equals itself. A condition is true, false or unknown, as in
SQL, and rows for which it is true stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ivme.serve.tagged_values import tagged, untagged

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}
_TEXTS: dict[str, Callable[[Any, str], Any]] = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}
_NULLS = ("IsNull", "IsNotNull")
EQUALITIES = ("EqualTo", "EqualNullSafe", "In")
"""The conditions that say which values a column has."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column is compared with; `kind` is the name of Spark's filter."""

    kind: str
    column: str
    value: Any = None
    negated: bool = False

    def to_json(self) -> list[Any]:
        return [self.kind, self.column, tagged(self.value), self.negated]

    @staticmethod
    def from_json(told: Sequence[Any]) -> Condition:
        kind, column, value, negated = told
        return Condition(kind, column, untagged(column, value), negated)

    @property
    def values(self) -> list[Any]:
        """The values that an equality allows."""
        return list(self.value) if self.kind == "In" else [self.value]


def read_filter(given: Any, schema: pa.Schema) -> Condition | None:
    """A filter of PySpark as a condition; None if Spark has to apply it itself."""
    negated = type(given).__name__ == "Not"
    inner = given.child if negated else given
    kind, path = type(inner).__name__, tuple(getattr(inner, "attribute", ("", "")))
    if len(path) != 1 or path[0] not in schema.names:
        return None
    value = list(inner.value) if kind == "In" else getattr(inner, "value", None)
    found = Condition(kind, path[0], value, negated)
    return found if _is_exact(found, schema.field(path[0]).type) else None


def _is_exact(condition: Condition, type_: pa.DataType) -> bool:
    if condition.kind in _NULLS:
        return True
    if condition.kind in _TEXTS:
        return pa.types.is_string(type_) and isinstance(condition.value, str)
    if condition.kind not in (*_COMPARED, *EQUALITIES) or not _is_plain(type_):
        return False
    try:
        pa.array(condition.values, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return condition.kind == "EqualNullSafe" or None not in condition.values


def _is_plain(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_string, pa.types.is_boolean, pa.types.is_date)
    return any(kind(type_) for kind in kinds) or (pa.types.is_timestamp(type_) and type_.tz is None)


def filtered(rows: pa.Table, conditions: Sequence[Condition]) -> pa.Table:
    """The rows for which all conditions are true."""
    for condition in conditions:
        rows = rows.filter(pc.fill_null(_truth(rows.column(condition.column), condition), fill_value=False))
    return rows


def _truth(column: pa.ChunkedArray, condition: Condition) -> Any:
    found = _plain_truth(column, condition)
    return pc.invert(found) if condition.negated else found


def _plain_truth(column: pa.ChunkedArray, condition: Condition) -> Any:
    kind, value = condition.kind, condition.value
    if kind in _NULLS:
        return pc.is_null(column) if kind == "IsNull" else pc.is_valid(column)
    if kind in _TEXTS:
        return _TEXTS[kind](column, value)
    if kind == "In":
        known = pc.is_in(column, pa.array(value, column.type))
        return pc.if_else(pc.is_valid(column), known, pa.scalar(None, pa.bool_()))
    if kind == "EqualNullSafe":
        if value is None:
            return pc.is_null(column)
        return pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), fill_value=False)
    return _COMPARED[kind](column, pa.scalar(value, column.type))
