"""`ShardedView.verify`: a view over shards against the view computed anew from the shards' tables, in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ivme.database import Database
from ivme.engine.expression.arrow_values import evaluate_table
from ivme.engine.read.verify import comparable
from ivme.errors import VerificationError
from ivme.query.failures import with_failing_rows
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.merge import WEIGHT
from ivme.shards.routing import kept_rows
from ivme.shards.sharding import Sharding
from ivme.view import View

if TYPE_CHECKING:
    from ivme.shards.database import ShardedDatabase
    from ivme.shards.view import ShardedView

Row = tuple[Any, ...]

_REQUESTS = 64


def verify_view(database: ShardedDatabase, view: ShardedView) -> None:
    """Compares all rows, or those of some access requests; VerificationError names a difference."""
    made, entry = view.sharding, database._catalog.view(view.name)
    with Database() as fresh:
        for relation in made.relations:
            declared = database._catalog.table(relation)
            fresh.create_table(relation, {c.name: c.type for c in declared.columns if c.type is not None})
            for answer in database._ask_all({"op": "table", "table": relation}):
                rows = answer.tables[0]
                fresh.apply(relation, rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy())
        for beneath in entry.beneath:
            _recomputed(fresh, beneath)
        expected = _recomputed(fresh, entry)
        for request in _some_requests(fresh, made) if made.query.input else [{}]:
            _compare(view.name, request, Counter(_counted(expected.items(**request))), view.items(**request))


def _recomputed(fresh: Database, view: ViewEntry | ViewText) -> View:
    """A view of a fresh database, recomputed when it is read; a view over closures checks itself."""
    options = {name: value for name, value in view.options if name in ("semantics", "graph")}
    made = fresh.create_view(view.name, view.text, **options)
    if made.explain().query_class.startswith("closure"):
        made.verify()
        return made
    fresh.drop_view(view.name)
    return fresh.create_view(view.name, view.text, **options, strategy="recompute")


def _some_requests(fresh: Database, made: Sharding) -> list[dict[str, Any]]:
    """Values of the parameters to verify: those of the first rows of atoms that have them."""
    values: dict[str, list[Any]] = {}
    for name, variable in zip(made.query.parameters, made.query.input, strict=True):
        atom = next(atom for atom in with_failing_rows(made.query) if variable in atom.variables)
        column = atom.columns[atom.terms.index(variable)]
        closure = made.query.table(atom.relation).closure_of
        rows, _ = fresh.contents(atom.relation if closure is None else closure.relation)
        _, kept = kept_rows(atom, rows)
        found = evaluate_table(column, kept.slice(0, _REQUESTS)).to_pylist()
        values[name] = [value for value in found if value is not None]
    size = min(map(len, values.values()))
    return [{name: listed[i] for name, listed in values.items()} for i in range(size)]


def _counted(items: Iterator[tuple[Row, int]]) -> dict[Row, int]:
    total: Counter[Row] = Counter()
    for row, multiplicity in items:
        total[comparable(row)] += multiplicity
    return total


def _compare(view: str, request: Mapping[str, Any], expected: Counter[Row], items: Iterator[tuple[Row, int]]) -> None:
    actual = _counted(items)
    for row in [*expected, *actual]:
        if expected[row] != actual.get(row, 0):
            given = f" for {dict(request)!r}" if request else ""
            raise VerificationError(
                f"view {view}{given} has the row {row!r} {actual.get(row, 0)} times; computed from its tables it is "
                f"there {expected[row]} times"
            )
