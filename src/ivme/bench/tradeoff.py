"""Update time against delay over a grid of ε, measured (source 003, Theorem 3.7 and section 5.5).

Each ε gets a database of its own with the same rows. Rows drawn at random are deleted and inserted again, one by one;
then the view is read, for parameters drawn from the rows that are there. Kernel operations are exact and repeatable;
seconds are the CPU's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.bench.data import ivme_types
from ivme.database import Database
from ivme.errors import PlanError
from ivme.query.expression import ColumnRef
from ivme.query.parse import parse
from ivme.view import View

EPSILONS = tuple(Fraction(i, 4) for i in range(5))
MOST_ROWS = 10_000
"""Rows read for one request at most."""


@dataclass(frozen=True, slots=True)
class Point:
    """What one ε costs: operations and seconds for an update and for a row read, and entries stored."""

    epsilon: Fraction
    update_operations: float
    update_seconds: float
    row_operations: float
    row_seconds: float
    entries: int


def tradeoff(
    query: str,
    tables: Mapping[str, pa.Table],
    epsilons: Sequence[Fraction] = EPSILONS,
    *,
    updates: int = 200,
    requests: int = 20,
) -> list[Point]:
    """One point for each ε, in their order."""
    return [_point(query, tables, epsilon, updates, requests) for epsilon in epsilons]


def _point(query: str, tables: Mapping[str, pa.Table], epsilon: Fraction, updates: int, requests: int) -> Point:
    with Database() as database:
        for name, rows in tables.items():
            database.create_table(name, ivme_types(rows.schema))
            database.insert(name, rows)
        view = database.create_view("measured", query, strategy="skew", epsilon=epsilon)
        if "n" not in view.stats():
            raise PlanError("the view has no heavy and light parts, so ε has no effect; see `ivme explain`")
        rng = np.random.default_rng(1)
        changed = _updated(database, [name for name in tables if name in _read(view)], tables, updates, rng)
        read = _requested(database, view, _parameters(query, tables, requests, rng))
        return Point(epsilon, *changed, *read, sum(view.stats()["maps"].values()))


def _read(view: View) -> set[str]:
    return {atom.relation for atom in view.state.typed.query.atoms}


def _updated(
    database: Database, names: Sequence[str], tables: Mapping[str, pa.Table], updates: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Operations and seconds for each update; rows are drawn from all tables in proportion to their sizes."""
    sizes = np.array([tables[name].num_rows for name in names], dtype=float)
    if not sizes.sum():
        raise PlanError("the tables have no rows to update")
    drawn = rng.choice(len(names), max(1, updates // 2), p=sizes / sizes.sum())
    changes = []
    for i in drawn.tolist():
        row = tables[names[i]].slice(int(rng.integers(sizes[i])), 1).to_pylist()[0]
        changes.append((names[i], tuple(row.values())))
    before, began = database.definitions.runtime.backend.operations, process_time()
    for name, row in changes:
        database.delete(name, [row])
        database.insert(name, [row])
    return _each(database, before, began, 2 * len(changes))


def _parameters(
    query: str, tables: Mapping[str, pa.Table], requests: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Values for the view's parameters, each drawn from a column that it is compared with; one request if none."""
    parsed = parse(query, _declared(tables))
    if not parsed.input:
        return [{}]
    columns = {
        term: tables[atom.relation][column.name]
        for atom in parsed.atoms
        for term, column in zip(atom.terms, atom.columns, strict=True)
        if isinstance(term, str) and isinstance(column, ColumnRef)
    }
    chosen = [(name, columns[variable]) for name, variable in zip(parsed.parameters, parsed.input, strict=True)]
    return [{n: column[int(rng.integers(len(column)))].as_py() for n, column in chosen} for _ in range(requests)]


def _declared(tables: Mapping[str, pa.Table]) -> tuple[Any, ...]:
    from ivme.tables import read_tables

    return read_tables({name: ivme_types(rows.schema) for name, rows in tables.items()})


def _requested(database: Database, view: View, requests: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Operations and seconds for each row; the end of an answer counts as a row."""
    before, began, read = database.definitions.runtime.backend.operations, process_time(), 0
    for request in requests:
        read += 1 + sum(1 for _ in islice(view.items(**request), MOST_ROWS))
    return _each(database, before, began, read)


def _each(database: Database, before: int, began: float, count: int) -> tuple[float, float]:
    return (database.definitions.runtime.backend.operations - before) / count, (process_time() - began) / count
