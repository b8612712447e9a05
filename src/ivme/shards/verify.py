"""`ShardedView.verify`: a view over shards against the view recomputed from the shards' tables, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from ivme.database import Database
from ivme.engine.codes.nested_values import python_values
from ivme.engine.expression.arrow_values import evaluate_table
from ivme.engine.read.verify import compare_rows, counted
from ivme.query.failures import failure_of, with_failing_rows
from ivme.query.shape import is_shape
from ivme.query.types import Type
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.merge import WEIGHT
from ivme.shards.routing import kept_rows
from ivme.shards.sharding import Sharding, sharding
from ivme.view import View

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase
    from ivme.shards.view import ShardedView

_REQUESTS = 64


@contextmanager
def gathered(database: ShardedDatabase, view: ShardedView) -> Iterator[tuple[Database, View]]:
    """An embedded database with the rows of the shards' tables that a view reads, and the same view in it."""
    made, entry = view.sharding, database._catalog.view(view.name)
    tables = sharding(entry.whole(), database._catalog.tables).needed if entry.feeds else made.needed
    functions = [each.user_function() for each in database._catalog.functions]
    with Database(functions=functions) as fresh:
        for relation in tables:
            declared = database._catalog.table(relation)
            fresh.create_table(relation, {c.name: c.type for c in declared.columns if c.type is not None})
            for answer in database._ask_all({"op": "table", "table": relation}):
                rows = answer.tables[0]
                fresh.apply(relation, rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy())
        for beneath in entry.beneath:
            _made(fresh, beneath)
        yield fresh, _made(fresh, entry)


def verify_view(database: ShardedDatabase, view: ShardedView) -> None:
    """Compares all rows, or those of some access requests; VerificationError names a difference.

    The view to compare with is one of an embedded database, which is verified itself.
    """
    entry, made = database._catalog.view(view.name), view.sharding
    if entry.block is not None:
        made = sharding(entry.whole(), database._catalog.tables)
    with gathered(database, view) as (fresh, expected):
        expected.verify()
        for request in _some_requests(fresh, made) if made.query.input else [{}]:
            given = f" for {request!r}" if request else ""
            both = (counted(each.items(**request)) for each in (expected, view))
            compare_rows(f"view {view.name}{given}", *both)


def _made(fresh: Database, view: ViewEntry | ViewText) -> View:
    options = {name: value for name, value in view.options if name in ("semantics", "graph")}
    return fresh.create_view(view.name, view.text, **options)


def _some_requests(fresh: Database, made: Sharding) -> list[dict[str, Any]]:
    """Values of the parameters to verify: those of the first rows of atoms that have them."""
    values: dict[str, list[Any]] = {}
    for name, variable in zip(made.query.parameters, made.query.input, strict=True):
        if is_shape(made.query):
            values[name] = _values_like(fresh, made, made.typed.types[variable])
            continue
        atom = next(atom for atom in with_failing_rows(made.query) if variable in atom.variables)
        column = atom.columns[atom.terms.index(variable)]
        closure = made.query.table(atom.relation).closure_of
        rows, _ = fresh.contents(atom.relation if closure is None else closure.relation)
        _, kept = kept_rows(atom, rows)
        test = failure_of(column, made.query.table(atom.relation))
        if test is not None:
            kept = kept.filter(pc.invert(evaluate_table(test, kept)))
        found = python_values(evaluate_table(column, kept.slice(0, _REQUESTS)))
        values[name] = [value for value in found if value is not None]
    size = min(map(len, values.values()))
    lists = dict(made.query.lists)
    return [
        {name: listed[i : i + 2] if name in lists else listed[i] for name, listed in values.items()}
        for i in range(size)
    ]


def _values_like(fresh: Database, made: Sharding, type_: Type) -> list[Any]:
    """Values of that type in the tables of a view of several blocks: some of them are compared with its parameter."""
    found: dict[Any, None] = {}
    for relation in made.relations:
        rows, _ = fresh.contents(relation)
        for column in fresh.definitions.table(relation).columns:
            if column.type == type_:
                found |= dict.fromkeys(python_values(rows.column(column.name).slice(0, _REQUESTS)))
    return [value for value in found if value is not None]
