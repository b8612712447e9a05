"""Queries computed from tables by plain hash joins: what every check of a view compares with.

Nothing here comes from the plan, the kernel, or the types that they work with: it takes the query as it was written
and the tables' rows in their declared types, and joins atom by atom with Python's dictionaries. It takes time and
memory linear in the tables and in all intermediate results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import reduce
from itertools import repeat
from operator import add, mul
from typing import Any, Protocol

import pyarrow as pa

from ivme.algebra.ring import Element, Ring
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.nested_values import python_values
from ivme.engine.read.plain_aggregates import aggregate_of
from ivme.errors import ExpressionError, VerificationError
from ivme.query.expression import ColumnRef, Expression, conjuncts, evaluate
from ivme.query.inference import type_of
from ivme.query.model import Atom, Constant, Query, Table, Term
from ivme.query.sql_values import compare, to_timestamp
from ivme.query.types import Type

Row = tuple[Any, ...]

_WIDE = Context(prec=80)
"""Digits enough for what does not fit 38 of them: reading the view is what fails then."""

Assignments = list[tuple[dict[str, Any], int]]


class Tables(Protocol):
    """Where rows come from: a database's reader."""

    def relation(self, name: str) -> Table: ...
    def contents(self, relation: str) -> tuple[pa.Table, Codes]: ...


def recompute(tables: Tables, query: Query) -> dict[Row, tuple[Row, int]]:
    """For each assignment of the inputs and outputs, the row and its multiplicity; none where multiplicities cancel."""
    groups = {key: group for key, group in _groups(tables, query).items() if sum(weight for _, weight in group)}
    if not groups and not query.input and not query.output and query.aggregates:
        groups[()] = []
    return {key: row_of(query, key, group) for key, group in groups.items()}


def recompute_elements(tables: Tables, query: Query, ring: Ring) -> dict[Row, dict[Row, Element]]:
    """For each access request that has rows, the rows with their elements of a ring; all rows, if there are no inputs.

    An element is the sum, over all assignments of the other variables, of the products of the lifted values.
    """
    found: dict[Row, dict[Row, Element]] = {} if query.input else {(): {}}
    for key, group in _groups(tables, query).items():
        total = reduce(add, [_lifted(ring, assignment, weight) for assignment, weight in group])
        if total.count:
            found.setdefault(key[: len(query.input)], {})[key[len(query.input) :]] = total
    return found


def _lifted(ring: Ring, assignment: Mapping[str, Any], weight: int) -> Any:
    return reduce(mul, [ring.lift(variable, assignment[variable]) for variable in ring.variables]).scaled(weight)


def _groups(tables: Tables, query: Query) -> dict[Row, Assignments]:
    """The joined rows by the values of inputs and outputs."""
    partial: Assignments = [({}, 1)]
    joined = query.never_null
    kinds: dict[str, str] = {}
    for number, atom in enumerate(query.atoms):
        mine = kinds_of(atom, tables.relation(atom.relation))
        partial = joined_with(partial, list(tuples_of(tables, atom, joined, number)), kinds, mine)
        kinds = {**mine, **kinds}
    groups: dict[Row, Assignments] = {}
    for assignment, weight in partial:
        for number in range(len(query.atoms)):
            for error in assignment[_errors(number)]:
                raise VerificationError(f"view {query.name} has a row that cannot be computed: {error}")
        key = tuple(assignment[variable] for variable in query.input + query.output)
        groups.setdefault(key, []).append((assignment, weight))
    return groups


def _errors(number: int) -> str:
    """Where an assignment has the errors of an atom's expressions: they count only if the row is in the result."""
    return f"\0{number}"


def tuples_of(
    tables: Tables, atom: Atom, joined: frozenset[str], number: int = 0
) -> Iterator[tuple[dict[str, Any], int]]:
    data, weights = tables.contents(atom.relation)
    table = tables.relation(atom.relation)
    plain = [(t, c.name) for t, c in zip(atom.terms, atom.columns, strict=True) if isinstance(c, ColumnRef)]
    computed = [(t, c) for t, c in zip(atom.terms, atom.columns, strict=True) if not isinstance(c, ColumnRef)]
    types = [type_of(column, table) for _, column in computed]
    tests = list(conjuncts(atom.where))
    for row, weight in zip(_rows(data), weights.tolist(), strict=True):
        values: dict[str, Any] = {_errors(number): []}
        if (
            all(_fits(values, term, row[name], joined) for term, name in plain)
            and all(_passes(test, row, values[_errors(number)]) for test in tests)
            and all(
                _fits(values, term, _value(column, row, type_, values[_errors(number)]), joined)
                for (term, column), type_ in zip(computed, types, strict=True)
            )
        ):
            yield values, weight


def _rows(data: pa.Table) -> Iterator[dict[str, Any]]:
    columns = [python_values(column) for column in data.columns]
    rows = zip(*columns, strict=True) if columns else repeat((), data.num_rows)
    return (dict(zip(data.column_names, row, strict=True)) for row in rows)


def _passes(test: Expression, row: Mapping[str, Any], errors: list[ExpressionError]) -> bool:
    """Whether a row passes a predicate; it does if that fails, as long as no other one drops the row."""
    try:
        return evaluate(test, row) is True
    except ExpressionError as error:
        errors.append(error)
        return True


def _value(column: Expression, row: Mapping[str, Any], type_: Type | None, errors: list[ExpressionError]) -> Any:
    """The value of a computed column, NULL if there is none."""
    try:
        return _in_type(evaluate(column, row), type_)
    except ExpressionError as error:
        errors.append(error)
        return None


def _fits(assignment: dict[str, Any], term: Term, value: Any, joined: frozenset[str]) -> bool:
    """Whether a column's value agrees with its constant, or with the variable, which takes it if it has none yet."""
    if isinstance(term, Constant):
        return value is not None and term.value is not None and compare(value, term.value) == 0
    if value is None:
        return term not in joined and assignment.setdefault(term, None) is None
    found = assignment.setdefault(term, value)
    return found is value or (found is not None and compare(found, value) == 0)


def _in_type(value: Any, type_: Type | None) -> Any:
    """A computed value as the column has it that it is computed for."""
    if value is None or type_ is None:
        return value
    if type_.kind == "decimal":
        return _rounded(Decimal(value), type_.scale or 0)
    if type_.kind == "float":
        return float(value)
    return to_timestamp(value) if type_.kind == "timestamp" else value


def kinds_of(atom: Atom, table: Table) -> dict[str, str]:
    """The kinds of values of an atom's variables, each that of its first column."""
    found: dict[str, str] = {}
    for term, column in zip(atom.terms, atom.columns, strict=True):
        type_ = type_of(column, table)
        if isinstance(term, str) and type_ is not None:
            found.setdefault(term, type_.kind)
    return found


def joined_with(
    left: Assignments, right: Assignments, kinds: Mapping[str, str], others: Mapping[str, str]
) -> Assignments:
    """The joined assignments, with the values of the left side where both have one."""
    if not left or not right:
        return []
    shared = [(v, _comparable(kinds.get(v), others.get(v))) for v in sorted(set(left[0][0]) & set(right[0][0]))]
    index: dict[Row, Assignments] = {}
    for assignment, weight in right:
        index.setdefault(tuple(key(assignment[v]) for v, key in shared), []).append((assignment, weight))
    return [
        ({**other, **one}, weight * times)
        for one, weight in left
        for other, times in index.get(tuple(key(one[v]) for v, key in shared), ())
    ]


def _comparable(kind: str | None, other: str | None) -> Callable[[Any], Any]:
    """What values of two kinds are compared by; Python compares integers with decimals as they are."""
    if kind != other and "float" in (kind, other):
        return lambda value: None if value is None else float(value)
    if {kind, other} == {"date", "timestamp"}:
        return lambda value: None if value is None else to_timestamp(value)
    return lambda value: value


def row_of(query: Query, key: Row, group: Assignments) -> tuple[Row, int]:
    values = dict(zip(query.input + query.output, key, strict=True))
    row = tuple(
        values[c.source] if isinstance(c.source, str) else aggregate_of(c.source, group, query) for c in query.head
    )
    count = sum(weight for _, weight in group)
    return row, 1 if query.distinct or query.aggregates else count


def _rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
