"""What the views must hold: DuckDB joins, filters and computes; sums, groups and sets are formed here, exactly.

DuckDB's own sums of floats depend on the order of the rows, and its averages of decimals are doubles, so that only the
joined rows are taken from it (see `dialect.SUMS`).
"""

from __future__ import annotations

import atexit
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from ivme.query.types import Type
from tests.fuzz import dialect
from tests.fuzz.aggregates import FOLDS
from tests.fuzz.known import is_avoided
from tests.fuzz.values import NAN, Column, Row, canonical
from tests.fuzz.views import DEVIATIONS, Item, ViewSpec

_ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "binary": pa.binary(),
}


MOST_ROWS = 4000
"""A case ends when a view joins more rows: cross products of views of cross products have too many to look at."""


class TooLarge(Exception):  # noqa: N818
    """A view joins too many rows, or a visible sum does not fit its type: the rest of the case is not run."""


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all cases, since opening one takes long; each case has a cursor with relations of its own."""
    opened = duckdb.connect(config={"threads": 1})
    dialect.install(opened)
    atexit.register(opened.close)
    return opened


class Oracle:
    """DuckDB over the tables and the views' expected rows, and the joined rows of each view."""

    def __init__(self) -> None:
        self.connection = _opened().cursor()

    def close(self) -> None:
        self.connection.close()

    def set(self, name: str, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Declares what a relation holds."""
        self.connection.register(name, arrow_rows(columns, (tuple(map(_positive, row)) for row in rows)))

    def joined(self, view: ViewSpec) -> list[Row]:
        """The rows that a view's FROM and WHERE leave: parameters, items and groups."""
        text = f"{view.duck_text()} LIMIT {MOST_ROWS + 1}"
        rows = self.connection.execute(text).fetchall()
        if len(rows) > MOST_ROWS:
            raise TooLarge
        return [tuple(map(_single, row)) for row in rows]


def _positive(value: Any) -> Any:
    """The value as ivme's columns hold it (`dialect.NEGATIVE_ZERO`)."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def _single(value: Any) -> Any:
    return NAN if isinstance(value, float) and math.isnan(value) else value


def arrow_type(type_: Type) -> pa.DataType:
    if type_.element is not None:
        return pa.list_(arrow_type(type_.element))
    if type_.fields:
        return pa.struct([(name, arrow_type(each)) for name, each in type_.fields])
    return pa.decimal128(type_.precision, type_.scale) if type_.kind == "decimal" else _ARROW[type_.kind]


def arrow_rows(columns: Sequence[Column], rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table in the types of the columns."""
    listed = list(rows)
    arrays = [pa.array([_named(row[i], c.type) for row in listed], arrow_type(c.type)) for i, c in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[c.name for c in columns])


def _named(value: Any, type_: Type) -> Any:
    """A struct's fields by their names."""
    if value is None or not type_.fields:
        return value
    return {name: each for (name, _), each in zip(type_.fields, value, strict=True)}


def answer(view: ViewSpec, joined: Sequence[Row], inputs: Mapping[str, Any]) -> Counter[Row]:
    """The rows of a view for the values of its parameters, from the rows that are joined."""
    asked = [canonical(inputs[each.name]) for each in view.parameters]
    width = len(asked)
    chosen = [row[width:] for row in joined if _matches(row, asked)]
    return _finished(view, chosen)


def whole(view: ViewSpec, joined: Sequence[Row]) -> Counter[Row]:
    """All rows of a view, with the values of its parameters in front: what its changes add up to."""
    width = len(view.parameters)
    by_inputs: dict[Row, list[Row]] = defaultdict(list)
    for row in joined:
        if None not in row[:width]:
            by_inputs[row[:width]].append(row[width:])
    if not width:
        return _finished(view, [*joined])
    return Counter(
        {(*inputs, *row): n for inputs, rows in by_inputs.items() for row, n in _finished(view, rows).items()}
    )


def _matches(row: Row, asked: Sequence[Any]) -> bool:
    return None not in asked and all(canonical(row[i]) == value for i, value in enumerate(asked))


def _finished(view: ViewSpec, rows: Sequence[Row]) -> Counter[Row]:
    width = len(view.items)
    if not view.aggregates:
        listed = Counter(row[:width] for row in rows)
        return Counter(dict.fromkeys(listed, 1)) if view.is_set else listed
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[width:]].append(row[:width])
    if view.group is None and not groups:
        groups[()] = []
    return Counter(_group_row(view.items, members) for members in groups.values())


def _group_row(items: Sequence[Item], members: Sequence[Row]) -> Row:
    return tuple(_aggregated(item, [row[i] for row in members]) for i, item in enumerate(items))


def _aggregated(item: Item, values: list[Any]) -> Any:
    if not item.function:
        return values[0]
    present = [value for value in values if value is not None]
    if item.function == "count":
        return len(values) if item.expression is None else len(present)
    if item.function == "count_distinct":
        return len({canonical(value) for value in present})
    if item.function == "count_if":
        return sum(present)
    if not present:
        return None
    if item.function in FOLDS:
        return FOLDS[item.function].value(sorted(present, key=_order))
    if item.function.endswith("_distinct"):
        present = list({canonical(value): value for value in present}.values())
    function = item.function.removesuffix("_distinct")
    if item.function in ("min", "max"):
        return (min if item.function == "min" else max)(present, key=_order)
    if item.function in DEVIATIONS:
        return _deviation(present, item.function)
    total = _sum(present)
    if function == "sum":
        return total
    if isinstance(total, Decimal):
        unit = Decimal(1).scaleb(-(item.type.scale or 0))
        return Context(prec=80).divide(total, Decimal(len(present))).quantize(unit, ROUND_HALF_UP, Context(prec=80))
    return total / len(present)


def _deviation(values: list[Any], function: str) -> float | None:
    """By definition, rounded once."""
    freedom = len(values) - function.endswith("samp")
    if not freedom:
        return None
    if not all(map(math.isfinite, values)):
        return NAN
    if any(isinstance(value, float) and math.isinf(value * value) for value in values):
        return math.inf  # the squares are summed, as docs/sql_functions.md says
    mean = sum(map(Fraction, values)) / len(values)
    variance = float(sum((Fraction(value) - mean) ** 2 for value in values) / freedom)
    return math.sqrt(variance) if function.startswith("stddev") else variance


def _sum(values: list[Any]) -> Any:
    if isinstance(values[0], Decimal):
        total = Decimal(0)
        for value in values:
            total = Context(prec=80).add(total, value)
        return total
    if not isinstance(values[0], float):
        return sum(values)
    finite = [value for value in values if math.isfinite(value)]
    rest = {value for value in values if not math.isfinite(value)}
    if not rest:
        return _float_sum(finite)
    return NAN if any(map(math.isnan, rest)) or len(rest) > 1 else rest.pop()


def _float_sum(values: list[float]) -> float:
    """As `math.fsum`, which raises where a part of the sum is too large; a sum that is too large itself is infinite."""
    try:
        return math.fsum(values)
    except OverflowError:
        total = sum(map(Fraction, values))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _order(value: Any) -> Any:
    """SQL's order: NaN above all numbers."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def comparable(view: ViewSpec, rows: Mapping[Row, int], *, inputs: bool = False) -> Counter[Row]:
    """Rows as they are compared: NaN equals NaN, types count, and sums of floats are rounded if they must be."""
    places = {i + len(view.parameters) * inputs for i, item in enumerate(view.items) if item.rounded}
    found: Counter[Row] = Counter()
    for row, count in rows.items():
        found[tuple(_rounded(v) if i in places else canonical(v) for i, v in enumerate(row))] += count
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value) and is_avoided("float sums"):
        return ("float", round(value, 6) + 0.0)
    return canonical(value)
