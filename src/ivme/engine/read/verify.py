"""Checks of views: their rows, read as users read them, against the rows that `recompute` gives."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from ivme.algebra.ring import Element
from ivme.engine.read.plain_aggregates import aggregate_of
from ivme.engine.read.recompute import recompute, tuples_of
from ivme.engine.runtime.decoding import Row, is_global
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.observed import Observed
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import VerificationError
from ivme.query.model import Aggregate, Query


class ReadableView(Protocol):
    """A view as its users read it."""

    def __call__(self, **parameters: Any) -> Iterator[Row]: ...

    def items(self, **parameters: Any) -> Iterator[tuple[Row, int]]: ...


def verify(reader: Reader, state: ViewState, opened: Callable[[ViewState], ReadableView]) -> None:
    """Raises VerificationError at the first row that is there too often or not often enough, or in another type.

    The views that it is built on come first: their rows are what it is recomputed from.
    """
    with reader.catalog.lock:
        for relation in state.relations:
            if relation in reader.catalog.views:
                verify(reader, reader.catalog.views[relation], opened)
        if isinstance(state.group, ExternalView):
            state.group.verify(reader, state)
            return
        query = state.typed.written
        expected: dict[Row, list[tuple[Row, int]]] = {} if query.input else {(): []}
        for key, row in recompute(reader, query).items():
            expected.setdefault(key[: len(query.input)], []).append(row)
        used, state.observed = state.observed, Observed()  # what is asked here is not what the view is used for
        try:
            _check_requests(query, expected, state, opened(state), _absent(reader, query, expected))
        finally:
            state.observed = used


def _check_requests(
    query: Query, expected: Mapping[Row, list[tuple[Row, int]]], state: ViewState, view: ReadableView, absent: list[Row]
) -> None:
    """Compares the answers to all requests that have rows, and to some that have none."""
    sources = (column.source for column in query.head)
    empty = tuple(aggregate_of(source, [], query) for source in sources if isinstance(source, Aggregate))
    nothing = [(empty, 1)] if _is_one_row(query) else []
    wanted = {**dict.fromkeys(absent, nothing), **expected}
    for number, inputs in enumerate(sorted(wanted, key=repr)):
        request = dict(zip(query.parameters, inputs, strict=True))
        rows = Counter(counted(wanted[inputs]))
        _compare(state, inputs, rows, Counter(counted(view.items(**request))))
        if number < _SAMPLED and rows.total() <= _LISTED:
            _compare(state, inputs, +rows, Counter(map(comparable, view(**request))))


_SAMPLED = 64
"""How many requests are also made row by row, and how many that have no rows are tried."""

_LISTED = 1_000_000
"""Answers of more rows are not read row by row: a single row may be there 2^62 times."""


def _is_one_row(query: Query) -> bool:
    return is_global(query.head, query.output)


def _absent(reader: Reader, query: Query, expected: Mapping[Row, object]) -> list[Row]:
    """Requests without rows, for values that the tables have."""
    found: dict[str, set[Any]] = {}
    asked = set(query.input)
    for atom in (each for each in query.atoms if not asked.isdisjoint(each.terms)):
        for values, _ in tuples_of(reader, atom, query.never_null):
            for variable in query.input:
                if values.get(variable) is not None:
                    found.setdefault(variable, set()).add(values[variable])
    if not query.input or len(found) < len(query.input):
        return []
    chosen = random.Random(0)
    lists = [sorted(found[variable], key=repr) for variable in query.input]
    tried = (tuple(map(chosen.choice, lists)) for _ in range(_SAMPLED))
    return [inputs for inputs in dict.fromkeys(tried) if inputs not in expected]


def counted(rows: Iterable[tuple[Row, int]]) -> dict[Row, int]:
    counted: Counter[Row] = Counter()
    for row, multiplicity in rows:
        counted[comparable(row)] += multiplicity
    return counted


def _compare(state: ViewState, inputs: Row, expected: Counter[Row], actual: Counter[Row]) -> None:
    given = f" for {inputs!r}" if inputs else ""
    _compare_types(f"view {state.name}{given}", expected, actual)
    compare_rows(f"view {state.name}{given}", expected, actual)


def compare_rows(view: str, expected: Mapping[Row, Any], actual: Mapping[Row, Any]) -> None:
    """Raises VerificationError at the first row with another multiplicity, or another element of a ring."""
    for row in [*expected, *actual]:
        wanted, found = expected.get(row, 0), actual.get(row, 0)
        if wanted == found or (isinstance(wanted, Element) and isinstance(found, Element) and wanted.is_close(found)):
            continue
        if isinstance(wanted, int) and isinstance(found, int):
            raise VerificationError(
                f"{view} has the row {row!r} {found} times; recomputed from its tables it has it {wanted} times"
            )
        raise VerificationError(
            f"{view} has {found!r} for the row {row!r}; recomputed from its tables it is {wanted!r}"
        )


def comparable(row: Row) -> Row:
    """A row that equals others of the same values: NaN, which a sum of infinities may be, does not equal itself."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row)


def _compare_types(view: str, expected: Iterable[Row], actual: Iterable[Row]) -> None:
    """Rows that are equal to Python may still be of other types: 1 is 1.0 there."""
    found = {row: row for row in actual}
    for row in expected:
        types = [
            [None if value is None else type(value).__name__ for value in each] for each in (row, found.get(row, row))
        ]
        if types[0] != types[1]:
            raise VerificationError(f"{view} has the row {found[row]!r}; computed from its tables it is {row!r}")
