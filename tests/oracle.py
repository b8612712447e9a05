"""The naive oracle: what a query means, computed from scratch by nested loops.

It shares nothing with the maintenance code but the query's model (and, for computed columns and predicates, the
interpreter of expressions), and is written to be obviously right, not fast. A database maps each relation to its
rows, in the order of the table's columns, and their multiplicities. NULL is None: it never equals anything, so a
variable that joins or is an input never takes it, and otherwise it groups with itself.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from ivme.query.expression import ColumnRef, Expression, evaluate
from ivme.query.model import Aggregate, Atom, Constant, Query, Table, Value

Row = tuple[Value, ...]
Database = Mapping[str, Mapping[Any, int]]
"""From relations to rows to multiplicities; mappings are invariant in their keys, so that rows cannot be typed."""

Assignment = dict[str, Value]
Weighted = tuple[Assignment, int]


def result(query: Query, database: Database) -> dict[Row, Any]:
    """The whole result: from values of `query.input + query.output` to their payload.

    The payload is the multiplicity (1 for DISTINCT), or with aggregates the tuple of their values in the order of
    `query.aggregates`. A tuple whose multiplicity is zero is not there.
    """
    answers: dict[Row, Any] = {}
    for key, group in _groups(query, database).items():
        multiplicity = sum(weight for _, weight in group)
        if multiplicity == 0:
            continue
        if query.aggregates:
            answers[key] = tuple(_aggregate(aggregate, group) for aggregate in query.aggregates)
        else:
            answers[key] = 1 if query.distinct else multiplicity
    return answers


def rows(query: Query, database: Database, inputs: Mapping[str, Value] | None = None) -> dict[Row, int]:
    """The rows, in the order of the head's columns, that SQL gives for one access request, with multiplicities.

    `inputs` has a value for each of `query.parameters`. Aggregates that are not grouped by any column of the head
    are one row even over nothing, as in `SELECT COUNT(*) FROM r WHERE x = :p`.
    """
    given = tuple((inputs or {})[parameter] for parameter in query.parameters)
    answers: Counter[Row] = Counter()
    for key, payload in result(query, database).items():
        if key[: len(given)] == given:
            answers[_head_row(query, key, payload)] += 1 if query.aggregates else payload
    grouped = bool(query.output) or any(isinstance(column.source, str) for column in query.head)
    if not answers and query.aggregates and not grouped:
        nothing = tuple(_aggregate(aggregate, []) for aggregate in query.aggregates)
        answers[_head_row(query, given, nothing)] = 1
    return {row: 1 if query.distinct else multiplicity for row, multiplicity in answers.items()}


def _head_row(query: Query, key: Row, payload: Any) -> Row:
    values: dict[str | Aggregate, Value] = dict(zip(query.input + query.output, key, strict=True))
    if query.aggregates:
        values.update(zip(query.aggregates, payload, strict=True))
    return tuple(values[column.source] for column in query.head)


def _groups(query: Query, database: Database) -> dict[Row, list[Weighted]]:
    groups: dict[Row, list[Weighted]] = defaultdict(list)
    for assignment, weight in assignments(query, database):
        groups[tuple(assignment[variable] for variable in query.input + query.output)].append((assignment, weight))
    return groups


def assignments(query: Query, database: Database) -> Iterator[Weighted]:
    """All values of the variables that satisfy the body, with the product of the multiplicities of their rows."""
    terms = Counter(term for atom in query.atoms for term in atom.terms)
    never_null = {term for term in terms if terms[term] > 1 or isinstance(term, Constant) or term in query.input}
    relations = [_relation(atom, query.table(atom.relation), database) for atom in query.atoms]

    def extend(assignment: Assignment, weight: int, depth: int) -> Iterator[Weighted]:
        if depth == len(query.atoms):
            yield assignment, weight
            return
        for values, multiplicity in relations[depth].items():
            extended = _match(query.atoms[depth], values, assignment, never_null)
            if extended is not None:
                yield from extend(extended, weight * multiplicity, depth + 1)

    return extend({}, 1, 0)


def _match(atom: Atom, values: Row, assignment: Assignment, never_null: set[Any]) -> Assignment | None:
    """The assignment that also says what this row says, or None if they contradict each other."""
    extended = dict(assignment)
    for term, value in zip(atom.terms, values, strict=True):
        if value is None and term in never_null:
            return None
        expected = term.value if isinstance(term, Constant) else extended.setdefault(term, value)
        if expected is not value and expected != value:
            return None
    return extended


def _relation(atom: Atom, table: Table, database: Database) -> Counter[Row]:
    """What the atom ranges over: the values of its columns in the rows that it keeps."""
    contents: Counter[Row] = Counter()
    stored = database.get(atom.relation, {})
    kept = ((row, weight) for row, weight in stored.items() if weight)
    if atom.closure:
        edges = {tuple(_value(column, table, row) for column in atom.columns) for row, _ in kept}
        pairs = {pair for pair in _closure(edges) if _holds(atom.where, table, pair)}
        return Counter(dict.fromkeys(pairs, 1))
    for row, weight in kept:
        if _holds(atom.where, table, row):
            contents[tuple(_value(column, table, row) for column in atom.columns)] += weight
    return contents


def _closure(edges: set[Row]) -> set[Row]:
    """The pairs of nodes with a path of one edge or more from the first to the second."""
    reached, frontier = set(edges), set(edges)
    while frontier:
        joined = ((*one, *other) for one in frontier for other in edges)
        longer: set[Row] = {(start, end) for start, middle, source, end in joined if middle == source is not None}
        frontier = longer - reached
        reached |= frontier
    return reached


def _value(expression: Expression, table: Table, row: Row) -> Value:
    named = dict(zip(table.column_names, row, strict=True))
    if isinstance(expression, ColumnRef):
        column = table.column(expression.name)
        assert column is not None
        return named[column.name]
    value: Value = evaluate(expression, named)
    return value


def _holds(predicate: Expression | None, table: Table, row: Row) -> bool:
    return predicate is None or _value(predicate, table, row) is True


def _aggregate(aggregate: Aggregate, group: Iterable[Weighted]) -> Any:
    """The aggregate's value over a group, as SQL has it: NULLs are ignored, and nothing to add up is NULL."""
    if aggregate.variable is None:
        return sum(weight for _, weight in group)
    weights: Counter[Any] = Counter()
    for assignment, weight in group:
        if assignment[aggregate.variable] is not None:
            weights[assignment[aggregate.variable]] += weight
    weights = Counter({value: weight for value, weight in weights.items() if weight})
    size = sum(weights.values())
    if aggregate.function == "count":
        return size
    if aggregate.function == "count_distinct":
        return len(weights)
    if not weights:
        return None
    if aggregate.function in ("min", "max"):
        return {"min": min, "max": max}[aggregate.function](weights)
    if aggregate.function in ("var_samp", "stddev_samp"):
        return _deviation(weights, size, root=aggregate.function == "stddev_samp")
    total = sum(value * weight for value, weight in weights.items())
    return total if aggregate.function == "sum" else total / size


def _deviation(weights: Mapping[Any, int], size: int, *, root: bool) -> float | None:
    """By definition: the squared distances from the mean, over one less than their number; one value has none."""
    if size == 1:
        return None
    mean = sum(Fraction(value) * weight for value, weight in weights.items()) / size
    variance = float(sum((Fraction(value) - mean) ** 2 * weight for value, weight in weights.items()) / (size - 1))
    return math.sqrt(variance) if root else variance
