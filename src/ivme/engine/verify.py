"""An independent check of a view: its query is computed from the tables by plain hash joins, and rows are compared.

Nothing here comes from the plan or the kernel: it reads the tables' rows and the query, and joins atom by atom with
Python's dictionaries. It takes time and memory linear in the tables and in all intermediate results.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from ivme.engine.maintained import Maintained
from ivme.engine.reading import Row
from ivme.engine.runtime import Runtime
from ivme.engine.view_state import ViewState
from ivme.errors import VerificationError
from ivme.query.expression import ColumnRef, evaluate
from ivme.query.inference import head_types, type_of
from ivme.query.model import Aggregate, Atom, Query
from ivme.query.sql_values import DECIMALS

Assignments = list[tuple[dict[str, Any], int]]


def verify(runtime: Runtime, state: ViewState) -> None:
    """Raises VerificationError at the first row that is there too often or not often enough.

    The views that it is built on come first: their rows are what it is recomputed from.
    """
    with runtime.lock:
        for relation in state.relations:
            if relation in runtime.views:
                verify(runtime, runtime.views[relation])
        if isinstance(state.group, Maintained):
            state.group.verify(runtime, state)
            return
        query = state.typed.query
        expected: dict[Row, list[tuple[Row, int]]] = {} if query.input else {(): []}
        for key, row in recompute(runtime, query).items():
            expected.setdefault(key[: len(query.input)], []).append(row)
        for inputs in sorted(expected, key=repr):
            _compare(state, inputs, Counter(_counted(expected[inputs])), _actual(runtime, state, inputs))


def recompute(runtime: Runtime, query: Query) -> dict[Row, tuple[Row, int]]:
    """For each assignment of the inputs and outputs, the row and its multiplicity."""
    partial: Assignments = [({}, 1)]
    joined = {v for v in query.variables if sum(atom.terms.count(v) for atom in query.atoms) > 1 or v in query.input}
    for atom in query.atoms:
        partial = _join(partial, list(_tuples(runtime, atom, joined)))
    groups: dict[Row, Assignments] = {}
    for assignment, weight in partial:
        key = tuple(assignment[variable] for variable in query.input + query.output)
        groups.setdefault(key, []).append((assignment, weight))
    if not groups and not query.input and not query.output and query.aggregates:
        groups[()] = []
    return {key: _row(query, key, group) for key, group in groups.items()}


def _tuples(runtime: Runtime, atom: Atom, joined: set[str]) -> Iterator[tuple[dict[str, Any], int]]:
    data, weights = runtime.contents(atom.relation)
    table = runtime.relation(atom.relation)
    types = [None if isinstance(column, ColumnRef) else type_of(column, table) for column in atom.columns]
    for row, weight in zip(data.to_pylist(), weights.tolist(), strict=True):
        if atom.where is not None and evaluate(atom.where, row) is not True:
            continue
        assignment: dict[str, Any] = {}
        for term, column, type_ in zip(atom.terms, atom.columns, types, strict=True):
            value = row[column.name] if isinstance(column, ColumnRef) and column.name in row else evaluate(column, row)
            value = value if type_ is None or not isinstance(value, Decimal) else _rounded(value, type_.scale or 0)
            assert isinstance(term, str)
            if (value is None and term in joined) or assignment.setdefault(term, value) != value:
                break
        else:
            yield assignment, weight


def _join(left: Assignments, right: Assignments) -> Assignments:
    if not left or not right:
        return []
    shared = sorted(set(left[0][0]) & set(right[0][0]))
    index: dict[Row, Assignments] = {}
    for assignment, weight in right:
        index.setdefault(tuple(assignment[v] for v in shared), []).append((assignment, weight))
    return [
        ({**one, **other}, weight * times)
        for one, weight in left
        for other, times in index.get(tuple(one[v] for v in shared), ())
    ]


def _row(query: Query, key: Row, group: Assignments) -> tuple[Row, int]:
    values = dict(zip(query.input + query.output, key, strict=True))
    row = tuple(
        values[c.source] if isinstance(c.source, str) else _aggregate(c.source, group, query) for c in query.head
    )
    count = sum(weight for _, weight in group)
    return row, 1 if query.distinct or query.aggregates else count


def _aggregate(aggregate: Aggregate, group: Assignments, query: Query) -> Any:
    if aggregate.variable is None:
        return sum(weight for _, weight in group)
    found = [(a[aggregate.variable], w) for a, w in group if a[aggregate.variable] is not None]
    if aggregate.function == "count":
        return sum(weight for _, weight in found)
    if aggregate.function == "count_distinct":
        return len({value for value, _ in found})
    if not found:
        return None
    if aggregate.function in ("min", "max"):
        return (min if aggregate.function == "min" else max)(value for value, _ in found)
    total = _total(found)
    size = 1 if aggregate.function == "sum" else sum(weight for _, weight in found)
    if not isinstance(found[0][0], Decimal):
        return total if aggregate.function == "sum" else total / size
    scale = head_types(query)[[c.source for c in query.head].index(aggregate)].scale or 0
    units = abs(Fraction(total) / size) * 10**scale
    return Decimal(math.floor(units + Fraction(1, 2)) * (-1 if total < 0 else 1)).scaleb(-scale, DECIMALS)


def _total(found: list[tuple[Any, int]]) -> Any:
    """The exact sum; of floats rounded once, as `math.fsum` does it."""
    if isinstance(found[0][0], Decimal):
        return sum(Fraction(value) * weight for value, weight in found)
    if not isinstance(found[0][0], float):
        return sum(value * weight for value, weight in found)
    ups, downs = (sum(weight for value, weight in found if value == end) for end in (math.inf, -math.inf))
    if ups or downs:
        return sum(math.inf if times > 0 else -math.inf for times in (ups, -downs) if times)
    found = [(value, weight) for value, weight in found if math.isfinite(value)]
    if all(weight == 1 for _, weight in found):
        with suppress(OverflowError):  # as a part of the sum may, where the whole does not
            return math.fsum(value for value, _ in found)
    total = sum(Fraction(value) * weight for value, weight in found)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, DECIMALS)


def _actual(runtime: Runtime, state: ViewState, inputs: Row) -> Counter[Row]:
    query = state.typed.query
    values = dict(zip(query.input, inputs, strict=True))
    codes = [state.finisher.domain(v).find_value(values[v]) for _, v in state.group.enumerations[state.name].inputs]
    rows: Counter[Row] = Counter()
    if None not in codes:
        for block in runtime.blocks(state, tuple(code for code in codes if code is not None)):
            for row, multiplicity in state.finisher.rows(block, values):
                rows[comparable(row)] += multiplicity
    if not rows and query.aggregates and not query.output and not inputs:
        rows[state.finisher.nothing()] = 1
    return rows


def _counted(rows: Iterable[tuple[Row, int]]) -> dict[Row, int]:
    counted: Counter[Row] = Counter()
    for row, multiplicity in rows:
        counted[comparable(row)] += multiplicity
    return counted


def _compare(state: ViewState, inputs: Row, expected: Counter[Row], actual: Counter[Row]) -> None:
    for row in [*expected, *actual]:
        if expected[row] != actual[row]:
            given = f" for {inputs!r}" if inputs else ""
            raise VerificationError(
                f"view {state.name}{given} has the row {row!r} {actual[row]} times; computed from its tables it is "
                f"there {expected[row]} times"
            )


def comparable(row: Row) -> Row:
    """A row that equals others of the same values: NaN, which a sum of infinities may be, does not equal itself."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row)
