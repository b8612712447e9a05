"""The invariants of a running program: each map holds what it stands for, and its indexes agree with its entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ivme.algebra.ring import count
from ivme.engine.reference.indexed_map import IndexedMap
from ivme.plan.ir.program import Map, Source
from ivme.query.model import Query
from tests import oracle
from tests.programs import NativeProgram, Running, StoredMap


def check_maps(query: Query, kernel: Running, database: Mapping[str, Counter[Any]]) -> None:
    """Every map but those of a lazy program that nobody has read yet."""
    sources = _sources(kernel)
    if isinstance(kernel, NativeProgram):
        kernel.kernel.verify()
    for declared in kernel.program.maps:
        stored = kernel.map(declared.name)
        if isinstance(stored, IndexedMap):
            check_indexes(stored)
        assert expected_counts(declared, sources, query, database) == counts(stored), declared.name


def counts(stored: StoredMap) -> dict[Any, int]:
    return {key: count(payload) for key, payload in stored.items()}


def expected_counts(
    declared: Map,
    sources: Mapping[str, Source],
    query: Query,
    database: oracle.Database,
    heavy: Mapping[str, set[Any]] | None = None,
) -> dict[Any, int]:
    """The definition of a map, evaluated by nested loops over the leaves; `heavy` are the heavy keys by partition."""
    leaves = {label: leaf(sources[label], query, database, heavy or {}) for label in declared.atoms}
    if declared.counted is not None:
        return _distinct_counts(declared, sources, query, database)
    if declared.role == "support":
        (label,) = declared.atoms
        positions = [sources[label].schema.index(variable) for variable in declared.schema]
        return dict(Counter(tuple(row[p] for p in positions) for row in leaves[label]))
    partial: list[tuple[dict[str, Any], int]] = [({}, 1)]
    for label in declared.atoms:
        partial = [
            ({**assignment, **new}, weight * multiplicity)
            for assignment, weight in partial
            for row, multiplicity in leaves[label].items()
            for new in [dict(zip(sources[label].schema, row, strict=True))]
            if all(assignment.get(variable, value) == value for variable, value in new.items())
        ]
    for label, schema in declared.indicators:
        positions = [sources[label].schema.index(variable) for variable in schema]
        present = {tuple(row[p] for p in positions) for row in leaf(sources[label], query, database, heavy or {})}
        partial = [
            ({**assignment, **new}, weight)
            for assignment, weight in partial
            for new in [dict(zip(schema, row, strict=True)) for row in present]
            if all(assignment.get(variable, value) == value for variable, value in new.items())
        ]
    summed: Counter[Any] = Counter()
    for assignment, weight in partial:
        summed[tuple(assignment[variable] for variable in declared.schema)] += weight
    return {key: weight for key, weight in summed.items() if weight}


def _distinct_counts(
    declared: Map, sources: Mapping[str, Source], query: Query, database: oracle.Database
) -> dict[Any, int]:
    """How many distinct tuples over the counted variables the atoms and projections below a map join to."""
    assert declared.counted is not None
    partial: list[dict[str, Any]] = [{}]
    for label, schema in [*((label, sources[label].schema) for label in declared.atoms), *declared.indicators]:
        positions = [sources[label].schema.index(variable) for variable in schema]
        present = {tuple(row[p] for p in positions) for row in leaf(sources[label], query, database)}
        partial = [
            {**assignment, **new}
            for assignment in partial
            for row in present
            for new in [dict(zip(schema, row, strict=True))]
            if all(assignment.get(variable, value) == value for variable, value in new.items())
        ]
    counted = {tuple(assignment[variable] for variable in declared.counted) for assignment in partial}
    places = [declared.counted.index(variable) for variable in declared.schema]
    return dict(Counter(tuple(row[place] for place in places) for row in counted))


def leaf(
    source: Source, query: Query, database: oracle.Database, heavy: Mapping[str, set[Any]] | None = None
) -> Counter[Any]:
    """The tuples of an atom's part, read off the oracle's assignments of a query that has this atom only."""
    table = query.table(source.atom.relation)
    tuples: Counter[Any] = Counter()
    for row, weight in oracle._relation(source.atom, table, database).items():
        assignment = oracle._match(source.atom, row, {}, {source.atom.variables[p] for p in source.not_null})
        repeated = [t for t in source.atom.terms if not isinstance(t, str) or source.atom.terms.count(t) > 1]
        nulls = [v for t, v in zip(source.atom.terms, row, strict=True) if t in repeated and v is None]
        if assignment is not None and not nulls:
            values = tuple(assignment[variable] for variable in source.atom.variables)
            if _is_in_part(source, values, heavy or {}):
                tuples[values] += weight
    return tuples


def _is_in_part(source: Source, values: tuple[Any, ...], heavy: Mapping[str, set[Any]]) -> bool:
    named = dict(zip(source.schema, values, strict=True))
    return all(
        (tuple(named[variable] for variable in side.key) in heavy[side.partition]) == side.heavy for side in source.part
    )


def _sources(kernel: Running) -> dict[str, Source]:
    """The sources of all atoms by label, as the program's own map labels name them."""
    labels = {label for declared in kernel.program.maps for label in declared.atoms}
    labels |= {label for declared in kernel.program.maps for label, _ in declared.indicators}
    return {label: kernel.program.source(label) for label in labels}


def check_indexes(stored: IndexedMap) -> None:
    """Each index counts exactly the projections of the entries."""
    for index, groups in stored._indexes.items():
        expected: Counter[Any] = Counter()
        for row in stored._entries:
            expected[tuple(row[p] for p in index.key), tuple(row[p] for p in index.values)] += 1
        actual = {(key, values): n for key, group in groups.items() for values, n in group.items()}
        assert dict(expected) == actual
        assert all(groups.values()), "an empty group stayed behind"
