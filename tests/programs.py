"""One program on either engine, fed with rows of Python values; and the rows of its view.

`Interpreter` takes values as they are. The compiled kernel is behind a `Backend`, and takes codes: here integers are
their own codes, and everything else has codes at the low end of their range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from benchmarks.programs import Input, ProgramOnBackend
from ivme._kernel import Dictionary
from ivme.algebra.exact import ExactSum
from ivme.algebra.ring import Payload, count
from ivme.engine.backend import Codes, whole_sums
from ivme.engine.codes.dictionary import NULL_CODE as NULL
from ivme.engine.expression.row_expression import Row, getter
from ivme.engine.ingest.feed import Feed, float_code
from ivme.errors import IvmeError
from ivme.plan.ir.program import Load, Program, Source, Step, Trigger
from ivme.query.expression import Call, Expression, Literal
from ivme.query.model import Aggregate, Atom, Query
from ivme.query.sql_values import DECIMALS
from ivme.query.totals import variance

Changes = Mapping[Row, int]
"""Rows with their change of multiplicity, consolidated."""

_SPAN = 2**40
_STRINGS = NULL + 1
_OTHERS = _STRINGS + _SPAN
FIRST_INTEGER = _OTHERS + _SPAN
"""The least integer that is its own code."""


class StoredMap(Protocol):
    """A map from tuples to payloads, as readers see it."""

    def get(self, key: Row) -> Payload | None: ...
    def items(self) -> Iterable[tuple[Row, Payload]]: ...
    def __len__(self) -> int: ...


class Running(Protocol):
    """A running program: `Interpreter`, or `NativeProgram`."""

    program: Program

    def apply(self, relation: str, changes: Changes) -> None: ...
    def build(self, database: Mapping[str, Changes]) -> None: ...
    def items(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, Payload, Row]]: ...
    def map(self, name: str) -> StoredMap: ...


class ValueCodes:
    """Codes for values of any hashable type; only integers and strings have the order that MIN and MAX need."""

    def __init__(self) -> None:
        self.strings = Dictionary(1, _STRINGS)
        self.dictionary = SimpleNamespace(native=self.strings)
        self._codes: dict[Any, int] = {}
        self._values: list[Any] = []

    def encode(self, value: Any) -> int:
        """The code of a value, which gets one if it had none; values that are equal have one code."""
        if value is None:
            return NULL
        if isinstance(value, str):
            return self.strings.encode_one(value)
        if isinstance(value, float | Decimal) and value == int(value):
            value = int(value)
        if isinstance(value, int) and FIRST_INTEGER <= value < 2**63:
            return int(value)
        if value not in self._codes:
            self._codes[value] = _OTHERS + len(self._values)
            self._values.append(value)
        return self._codes[value]

    def decode(self, code: int) -> Any:
        if code >= FIRST_INTEGER:
            return code
        return self._values[code - _OTHERS] if code >= _OTHERS else self.strings.decode_one(code)


class NativeProgram(ProgramOnBackend):
    """A program on the compiled kernel, with Python values."""

    def __init__(self, program: Program, slots: Sequence[str] | None = None) -> None:
        self.codes = ValueCodes()
        variables = {variable for declared in program.maps for variable in declared.schema}
        super().__init__(without_constants(program), slots, dict.fromkeys(variables, self.codes))
        self.kernel = self.backend.kernel
        self._distinct = [extreme.function == "count_distinct" for extreme in program.enumeration.extremes]
        self._plain = not any(program.map(factor.map).sums for factor in program.enumeration.factors)

    def apply(self, relation: str, changes: Changes) -> None:
        """Runs the trigger of a relation; on any error every map is as it was."""
        self.apply_columns(relation, *self._input(self.feeds[relation], changes))

    def apply_one(self, relation: str, row: Row, weight: int) -> None:
        """`apply` for a single row, on the kernel's short path."""
        self.backend.run_one(self.backend.number(relation), self._encoder(self.feeds[relation])(row), weight)

    def build(self, database: Mapping[str, Changes]) -> None:
        """Fills the empty maps from whole tables."""
        feeds = self.feeds if self.program.lazy else self.build_feeds
        self.build_columns(
            {relation: self._input(feed, database.get(relation, {})) for relation, feed in feeds.items()}
        )

    def items(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, Payload, Row]]:
        """The output tuples of an access request, each with its payload and its extremes. NULL equals nothing."""
        if None in [inputs[name] for name in self._inputs]:
            return
        cursor = self.open({name: self.codes.encode(inputs[name]) for name in self._inputs})
        while len((block := cursor.next_block(8192))[1]):
            columns, counts, slots, extremes = block
            values = [
                column.tolist() if plain else list(map(self.codes.decode, column.tolist()))
                for plain, column in zip(self._distinct, extremes, strict=True)
            ]
            tuples = self._tuples(columns, len(counts))
            for i, payload in enumerate(_payloads(counts, slots, plain=self._plain)):
                yield tuples[i], payload, tuple(column[i] for column in values)

    def map(self, name: str) -> NativeMap:
        return NativeMap(self, name)

    def _input(self, feed: Feed, changes: Changes) -> Input:
        encode = self._encoder(feed)
        table = np.array([encode(row) for row in changes], np.int64).reshape(len(changes), len(feed.columns))
        columns = [np.ascontiguousarray(table[:, i]) for i in range(len(feed.columns))]
        return columns, np.fromiter(changes.values(), np.int64, len(changes))

    def _encoder(self, feed: Feed) -> Callable[[Row], tuple[int, ...]]:
        getters = [(getter(column.expression, feed.row, column.guard), column.form) for column in feed.columns]
        return lambda row: tuple(self._coded(get(row), form) for get, form in getters)

    def _coded(self, value: Any, form: str) -> int:
        """A value in one of the forms in which feeds have it."""
        if form == "test":
            return int(value is True)
        if form in ("low", "high"):
            word = (0 if value is None else int(value)) >> (64 if form == "high" else 0) & (2**64 - 1)
            return word - 2**64 if word >= 2**63 else word
        if value is None or form == "known":
            return NULL if value is None else 0
        code = float_code(float(value)) if form == "float" else self.codes.encode(value)
        if form == "int" and code < FIRST_INTEGER:
            raise IvmeError(f"{value!r} cannot be summed as a 64-bit integer; give the sum a wider slot")
        return code

    def _tuples(self, columns: Sequence[Codes], n: int) -> list[Row]:
        decoded = [list(map(self.codes.decode, column.tolist())) for column in columns]
        return list(zip(*decoded, strict=True)) if decoded else [()] * n


def _payloads(counts: Codes, slots: Sequence[Any], *, plain: bool) -> Iterator[Payload]:
    return iter(counts.tolist()) if plain else iter(zip(counts.tolist(), *map(whole_sums, slots), strict=True))


class NativeMap:
    """One of the kernel's maps, as readers see it."""

    def __init__(self, owner: NativeProgram, name: str) -> None:
        self._owner = owner
        self._number = owner.backend._maps[name]
        self._plain = not owner.program.map(name).sums

    def __len__(self) -> int:
        return self._owner.kernel.size(self._number)

    def items(self) -> list[tuple[Row, Payload]]:
        columns, counts, slots = self._owner.kernel.scan(self._number)
        rows = self._owner._tuples(columns, len(counts))
        return list(zip(rows, _payloads(counts, slots, plain=self._plain), strict=True))

    def get(self, key: Row) -> Payload | None:
        found = self._owner.kernel.get(self._number, [self._owner.codes.encode(value) for value in key])
        return None if found is None else int(found[0]) if self._plain else found


def without_constants(program: Program) -> Program:
    """The program with constants among terms as predicates, as the database compiles them."""
    triggers = tuple(Trigger(each.relation, tuple(map(_step, each.steps))) for each in program.triggers)
    return replace(program, triggers=triggers, build=tuple(map(_step, program.build)))


def _step(step: Step) -> Step:
    return Load(step.target, _source(step.source)) if isinstance(step, Load) else step


def _source(source: Source) -> Source:
    atom = source.atom
    pairs = list(zip(atom.terms, atom.columns, strict=True))
    where = atom.where
    for term, column in pairs:
        if not isinstance(term, str):
            test: Expression = Call("eq", (column, Literal(term.value)))
            where = test if where is None else Call("and", (where, test))
    kept = [(term, column) for term, column in pairs if isinstance(term, str)]
    plain = Atom(atom.relation, tuple(t for t, _ in kept), tuple(c for _, c in kept), where)
    return replace(source, atom=plain)


def rows(query: Query, kernel: Running, parameters: Mapping[str, Any]) -> Iterator[tuple[Row, int]]:
    """The distinct rows of an access request, each with its multiplicity, lazily.

    `parameters` has a value for each of the query's parameters. Aggregates that no output groups are one row even
    over nothing (COUNT 0, SUM NULL); a view with DISTINCT has every row once.
    """
    inputs = {variable: parameters[name] for variable, name in zip(query.input, query.parameters, strict=True)}
    nothing = True
    for output, payload, extremes in kernel.items(inputs):
        nothing = False
        values = {**inputs, **dict(zip(query.output, output, strict=True))}
        row = tuple(_column(c.source, values, payload, extremes, kernel) for c in query.head)
        yield row, 1 if query.distinct or query.aggregates else count(payload)
    if nothing and _is_global(query):
        yield tuple(_over_nothing(column.source) for column in query.head), 1


def _is_global(query: Query) -> bool:
    return bool(query.aggregates) and not query.output and len(query.aggregates) == len({c.source for c in query.head})


def _column(
    source: str | Aggregate, values: Mapping[str, Any], payload: Payload, extremes: Row, running: Running
) -> Any:
    if isinstance(source, str):
        return values[source]
    return _aggregate(source, values, payload, extremes, running)


def _aggregate(
    aggregate: Aggregate, values: Mapping[str, Any], payload: Payload, extremes: Row, running: Running
) -> Any:
    reading = running.program.enumeration
    if aggregate.variable is None:
        return count(payload)
    if aggregate.definition.is_ordered:
        if aggregate.variable in values:
            value = values[aggregate.variable]
            return value if aggregate.function != "count_distinct" else int(value is not None)
        wanted = (aggregate.function, aggregate.variable)
        return next(v for e, v in zip(reading.extremes, extremes, strict=True) if (e.function, e.variable) == wanted)
    totals = dict(zip(reading.slots, payload[1:] if isinstance(payload, tuple) else (), strict=True))
    present, *sums = (totals[slot, aggregate.variable] for slot in aggregate.definition.slots)
    if aggregate.function == "count":
        return present
    return _FINISHED[aggregate.function](present, *sums) if present else None


def _sum(_: int, total: Any) -> Any:
    return float(total) if isinstance(total, ExactSum) else total


def _mean(present: int, total: Any) -> Any:
    total = _sum(present, total)
    return DECIMALS.divide(total, present) if isinstance(total, Decimal) else total / present


def _variance(present: int, total: Any, squares: Any) -> float | None:
    """Over the values themselves: decimals are not in units here, and no type is known."""
    if isinstance(total, Decimal):
        total, squares = Fraction(total), Fraction(squares)
        spread = present * squares - total * total
        return None if present == 1 else float(spread / (present * (present - 1)))
    return variance(present, total, squares, 0)


def _deviation(present: int, total: Any, squares: Any) -> float | None:
    found = _variance(present, total, squares)
    return None if found is None else math.sqrt(found)


_FINISHED: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "avg": _mean,
    "var_samp": _variance,
    "stddev_samp": _deviation,
}


def _over_nothing(source: str | Aggregate) -> int | tuple[()] | None:
    return source.definition.over_nothing if isinstance(source, Aggregate) else None
