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
from ivme.query.failures import with_failing_rows
from ivme.query.model import Table
from ivme.query.names import CLOCK
from ivme.shards.catalog import ShardCatalog, ViewEntry, read_view_options
from ivme.shards.degrees import local_degrees
from ivme.shards.distribute import with_weights
from ivme.shards.functions import mentioned, name_function
from ivme.shards.planning import check_view, plan_view, views_beneath
from ivme.shards.routing import Routing
from ivme.shards.sharding import sharding

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
    if pipeline.copy is not None:
        fields["copy"].refuse(
            "with shards the tables are in the checkpoint of the engine, which copy does not know; leave copy out, and "
            "put the checkpoint in an object store: engine: {shards: 8, checkpoint: s3://...}"
        )
    tables = dict(fields["tables"].entries())
    for source in pipeline.tables:
        if source.watermark is not None:
            dict(tables[source.table.name].entries())["watermark"].refuse(
                "shards have no clock yet, which a watermark moves; leave out watermark, or engine"
            )
    _refuse_views(pipeline, dict(fields["views"].entries()), database)


def _refuse_views(pipeline: Pipeline, views: dict[str, Node], database: Database) -> None:
    catalog = empty_catalog(pipeline, database)
    for view in pipeline.views:
        node = views.get(view.name)
        if CLOCK in database.definitions.catalog.tables and _reads_clock(database, view.name) and node is not None:
            node.refuse(
                f"view {view.name} compares rows with the clock (NOW() or expire), which shards do not have yet"
            )

        def planned(view: Any = view, catalog: ShardCatalog = catalog) -> ShardCatalog:
            return with_planned(catalog, view.name, view.query, dict(view.options), pipeline.shards)

        catalog = planned() if node is None else node.within(planned)


def _reads_clock(database: Database, view: str) -> bool:
    """Whether a view, or one of its blocks, reads the clock."""
    known = database.definitions.catalog.views
    names, waiting = set[str](), [view]
    while waiting:
        name = waiting.pop()
        if name == CLOCK:
            return True
        if name in known and name not in names:
            names.add(name)
            waiting += known[name].relations
    return False


def empty_catalog(pipeline: Pipeline, database: Database) -> ShardCatalog:
    """The tables and functions of a pipeline, as shards know them."""
    tables = tuple(database.relation(name) for name in database.tables)
    return ShardCatalog(tables, (), tuple(name_function(each) for each in pipeline.functions))


def with_planned(catalog: ShardCatalog, name: str, query: str, options: dict[str, object], shards: int) -> ShardCatalog:
    """The catalog with a view as it is spread over empty tables; PlanError if it cannot be."""
    entry = ViewEntry(name, query, read_view_options(options), Routing(shards, (), ()))
    entry = replace(entry, functions=mentioned(catalog.functions, query))
    entry = replace(entry, beneath=views_beneath(entry, catalog))
    check_view(entry, catalog)
    return catalog.with_view(plan_view(entry, catalog, _no_rows(), whole_rows=False).entry)


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
    return [(entry.name, spread_notes(entry, catalog.tables)) for entry in catalog.views]
