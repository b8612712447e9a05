"""What a pipeline file says about the engine that maintains its views: `engine: {shards: 8}`.

Without it one engine beside Spark's driver has all tables and views. With shards, tables and views are spread over
processes on Spark's hosts; what these cannot do is refused here, by name, before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.document import Node
from ivme.pipeline.model import Pipeline, Sharded
from ivme.pipeline.read_changes import located
from ivme.query.clock import CLOCK_TABLE
from ivme.query.failures import with_failing_rows
from ivme.query.model import Table
from ivme.shards.blocks import planned_views
from ivme.shards.catalog import ShardCatalog, ViewEntry, read_view_options
from ivme.shards.degrees import local_degrees
from ivme.shards.distribute import with_weights
from ivme.shards.functions import mentioned, name_function
from ivme.shards.planning import check_view, views_beneath
from ivme.shards.routing import Routing
from ivme.shards.sharding import sharding
from ivme.shards.view_query import with_expiry

_ENGINE = ("shards", "checkpoint", "hosts", "tls")
MOST_SHARDS = 1024


def read_engine(node: Node, home: Path) -> Sharded:
    """The engine as the file has it."""
    fields = node.fields(_ENGINE, ("shards",))
    counts = {name: fields[name].number() for name in ("shards", "hosts") if name in fields}
    for name, count in counts.items():
        if count > MOST_SHARDS:
            fields[name].refuse(f"{fields[name].name} is at most {MOST_SHARDS}; it is {count}")
    if counts.get("hosts", 0) > counts["shards"]:
        fields["hosts"].refuse(
            f"{counts['hosts']} hosts cannot serve {counts['shards']} shards: a host serves one or more"
        )
    checkpoint = located(fields["checkpoint"].text(), home) if "checkpoint" in fields else None
    return Sharded(counts["shards"], checkpoint, counts.get("hosts"), tls="tls" in fields and fields["tls"].boolean())


def refuse_unsharded(pipeline: Pipeline, fields: dict[str, Node], database: Database) -> None:
    """Refuses what a pipeline over shards cannot have; `database` has its tables and views, without rows."""
    if pipeline.engine is None:
        return
    _refuse_views(pipeline, dict(fields["views"].entries()), database)


def _refuse_views(pipeline: Pipeline, views: dict[str, Node], database: Database) -> None:
    catalog = empty_catalog(pipeline, database)
    for view in pipeline.views:
        node = views.get(view.name)

        def planned(view: Any = view, catalog: ShardCatalog = catalog) -> ShardCatalog:
            return with_planned(catalog, view.name, view.query, dict(view.options), pipeline.shards)

        catalog = planned() if node is None else node.within(planned)


def empty_catalog(pipeline: Pipeline, database: Database) -> ShardCatalog:
    """The tables and functions of a pipeline, as shards know them, and the clock."""
    tables = (*(database.relation(name) for name in database.tables), CLOCK_TABLE)
    return ShardCatalog(tables, (), tuple(name_function(each) for each in pipeline.functions))


def with_planned(catalog: ShardCatalog, name: str, query: str, options: dict[str, object], shards: int) -> ShardCatalog:
    """The catalog with a view as it is spread over empty tables; PlanError if it cannot be."""
    query, _, others = with_expiry(query, options)
    entry = ViewEntry(name, query, read_view_options(others), Routing(shards, (), ()))
    entry = replace(entry, functions=mentioned(catalog.functions, query))
    entry = replace(entry, beneath=views_beneath(entry, catalog))
    check_view(entry, catalog)
    made = [catalog]
    for planned in planned_views(entry, lambda: made[-1], _no_rows(), whole_rows=False):
        made.append(made[-1].with_view(planned.entry))
    return made[-1]


def _no_rows() -> Callable[[ShardCatalog, str], list[list[dict[str, Any]]]]:
    """The statistics of tables without rows."""

    def degrees(catalog: ShardCatalog, view: str) -> list[list[dict[str, Any]]]:
        made = sharding(catalog.view(view), catalog.tables)
        read = [(atom, made.table(atom.relation)) for atom in with_failing_rows(made.query)]
        return [[local_degrees(atom, table, _empty(table)) for atom, table in read]]

    return degrees


def _empty(table: Table) -> Any:
    import numpy as np

    return with_weights(arrow_schema(table).empty_table(), np.zeros(0, np.int64))


def explained(pipeline: Pipeline, database: Database) -> Sequence[tuple[str, tuple[str, ...]]]:
    """How each view of a pipeline is spread over its shards, in lines; `database` has its tables and views."""
    from ivme.shards.planning import spread_notes

    catalog = empty_catalog(pipeline, database)
    for view in pipeline.views:
        catalog = with_planned(catalog, view.name, view.query, dict(view.options), pipeline.shards)
    return [(entry.name, spread_notes(entry, catalog.tables)) for entry in catalog.shown]
