"""Whether ivme's rows are DuckDB's, which has other types for some numbers and breaks ties at a LIMIT its own way.

AVG of a decimal is a decimal in Spark and a double in DuckDB, and sums of doubles depend on the order of the rows: so
doubles and decimals are compared up to a millionth. Everything else must be equal.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

Row = tuple[Any, ...]


def without_limit(text: str) -> str:
    """The query without its own LIMIT; empty if it has none.

    >>> without_limit("SELECT a FROM (SELECT a FROM r LIMIT 2) ORDER BY a LIMIT 1")
    'SELECT a FROM (SELECT a FROM r LIMIT 2) ORDER BY a'
    """
    tree = sqlglot.parse_one(text, read="duckdb")
    if not tree.args.get("limit"):
        return ""
    return text[: text.upper().rindex("LIMIT")].rstrip()


def with_totals_of_rows(text: str) -> str:
    """The query without the totals of ROLLUP, CUBE and GROUPING SETS that DuckDB has of no rows, and Spark has not."""
    tree = sqlglot.parse_one(text, read="duckdb")
    found = [each for each in tree.find_all(exp.Group) if each.find(exp.Rollup, exp.Cube, exp.GroupingSets)]
    for group in found:
        assert isinstance(group.parent, exp.Select)
        group.parent.having("COUNT(*) > 0", copy=False)
    return tree.sql(dialect="duckdb") if found else text


def ordered_by(text: str) -> tuple[int, ...]:
    """The places of the columns that the rows are ordered by, up to the first key that is not one of them."""
    tree = sqlglot.parse_one(text, read="duckdb")
    order = tree.args.get("order")
    if order is None or not isinstance(tree, exp.Query):
        return ()
    names = [item.alias_or_name.lower() for item in tree.selects]
    places: list[int] = []
    for key in order.expressions:
        name = key.this.name.lower()
        if isinstance(key.this, exp.Literal) and key.this.is_int:
            places.append(int(name) - 1)
        elif isinstance(key.this, exp.Column) and names.count(name) == 1:
            places.append(names.index(name))
        else:
            break
    return tuple(places)


def difference(ours: Iterable[Row], theirs: Iterable[Row]) -> str:
    """What tells two bags of rows apart; empty if nothing does."""
    mine, yours = _grouped(ours), _grouped(theirs)
    for key in {**mine, **yours}:
        left, right = mine.get(key, []), yours.get(key, [])
        if len(left) != len(right) or not all(map(_close, sorted(left), sorted(right))):
            return f"{key}: {sorted(left)[:3]} here, {sorted(right)[:3]} expected"
    return ""


def missing(ours: Iterable[Row], theirs: Iterable[Row]) -> str:
    """A row of ours that the others do not have; empty if they have all. Equal rows are not counted."""
    yours = _grouped(theirs)
    for key, rows in _grouped(ours).items():
        for numbers in rows:
            if not any(_close(numbers, other) for other in yours.get(key, [])):
                return f"{key}: {numbers} here, not among the rows expected without LIMIT"
    return ""


def misordered(ours: Sequence[Row], theirs: Sequence[Row], places: Sequence[int]) -> str:
    """Where the columns that rows are ordered by are not those of DuckDB, row by row; empty if they are."""
    for i, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        left, right = (tuple(row[place] for place in places) for row in (mine, yours))
        if difference([left], [right]):
            return f"row {i} in order: {left} here, {right} expected"
    return ""


def _grouped(rows: Iterable[Row]) -> dict[Row, list[tuple[float, ...]]]:
    """Rows by what must be equal; the numbers, which need only be close, aside."""
    found: dict[Row, list[tuple[float, ...]]] = defaultdict(list)
    for row in rows:
        found[tuple("number" if _is_fraction(v) else v for v in row)].append(
            tuple(float(v) for v in row if _is_fraction(v))
        )
    return found


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float | Decimal)


def _close(left: tuple[float, ...], right: tuple[float, ...]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-5) for a, b in zip(left, right, strict=True))
