"""One engine of a shard: an embedded database with the tables that one pattern of a view reads, and the view.

The engine of a table has the table alone: it checks primary keys and deletes, and it is what views are built from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.changes import Changes
from ivme.closure_view import ClosureView
from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.runtime.delta import delta_table
from ivme.plan.explain.explanation import Explanation
from ivme.query.inference import head_types
from ivme.query.model import Table
from ivme.query.table import promises
from ivme.shards.distribute import with_weights
from ivme.shards.functions import defined
from ivme.shards.merge import WEIGHT, consolidated, finish, group_numbers
from ivme.shards.sharding import Sharding, needs_merging
from ivme.view import View


class Engine:
    """An embedded database for one `EngineKey`."""

    def __init__(self, tables: Mapping[str, str], declared: Sequence[Table], sharding: Sharding | None = None) -> None:
        """`tables` maps the engine's tables to the relations that their rows come from."""
        self.relations = dict(tables)
        self.sharding = sharding
        self._promising = any(table.append_only or table.static for table in declared)
        called = () if sharding is None else sharding.functions
        self._database = Database(functions=[each.user_function() for each in called])
        self._database.definitions.functions.defined.update(defined(called))  # those that the parsed query calls
        self._view: View | None = None
        self._feed: Changes | None = None
        for table in declared:
            types = {column.name: column.type for column in table.columns if column.type is not None}
            self._database.create_table(
                table.name,
                types,
                **promises(table),
            )

    @staticmethod
    def of_table(table: Table) -> Engine:
        return Engine({table.name: table.name}, [table])

    @staticmethod
    def of_view(sharding: Sharding) -> Engine:
        """The engine of a view, whose view is made by `complete` once its tables are filled, in bulk."""
        tables = {occurrence.table: occurrence.relation for occurrence in sharding.occurrences}
        return Engine(tables, sharding.engine_tables(), sharding)

    def complete(self, *, followed: bool) -> None:
        """Makes the view, unless it is there, and follows it, or stops to."""
        if self.sharding is None:
            return
        if self._view is None:
            self._view = self._made(self.sharding)
        if followed and self._feed is None:
            self._feed = self._view.changes()
        elif not followed and self._feed is not None:
            self._feed.close()
            self._feed = None

    def _made(self, sharding: Sharding) -> View:
        for view in sharding.beneath:
            self._database.create_view(view.name, view.text, **dict(view.options))
        query: Any = sharding.gathered or sharding.engine_query()
        return self._database.create_view(sharding.name, query, **sharding.engine_options())

    def explain(self) -> Explanation:
        """What the engine does for its view."""
        assert self._view is not None
        return self._view.explain()

    def path(self, src: Any, dst: Any) -> list[Any] | None:
        """A shortest path between two nodes of a closure; None if there is none."""
        assert isinstance(self._view, ClosureView)
        return self._view.path(src, dst)

    def stats(self) -> dict[str, Any]:
        """Of a view with heavy and light parts, how its keys are split here."""
        assert self._view is not None
        return self._view.stats()

    def apply(self, parts: Iterable[tuple[str, pa.Table]], clipped: Iterable[str] = (), sign: int = 1) -> None:
        """Applies rows with weights to the engine's tables, all or nothing."""
        lenient = {relation.lower() for relation in clipped}
        with self._database.batch() as batch:
            for table, rows in parts:
                plain = rows.drop_columns([WEIGHT])
                batch.apply(table, plain, sign * rows.column(WEIGHT).to_numpy())
                if self.relations[table].lower() in lenient:
                    batch.delete(table, plain.slice(0, 0), strict=False)

    @property
    def takes_back(self) -> bool:
        """Whether a batch can be undone by its opposite: no table promises that rows are never taken away."""
        return not self._promising

    @property
    def entries(self) -> int:
        return self._database.entries()

    def contents(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each table, with their multiplicities as last column."""
        for table in self.relations:
            yield table, with_weights(*self._database.contents(table))

    def rows(self, parameters: Mapping[str, Any]) -> pa.Table:
        """The partial rows of an access request; those of a view without aggregates have multiplicities."""
        assert self.sharding is not None
        assert self._view is not None
        is_listed = any(isinstance(value, list) for value in parameters.values())
        found = (type(self._view) if is_listed else View).group_batches(self._view, parameters)
        schema = self.partial_schema(self.sharding)
        if self.sharding.has_partial_rows:
            return pa.Table.from_batches([batch for batch, _ in found], schema=schema)
        weighted = [pa.record_batch([*batch.columns, pa.array(counts)], schema=schema) for batch, counts in found]
        return pa.Table.from_batches(weighted, schema=schema)

    @staticmethod
    def partial_schema(sharding: Sharding) -> pa.Schema:
        """The columns of the partial rows of a view."""
        types = head_types(sharding.engine_query()) if sharding.has_partial_rows else sharding.typed.head
        fields = [pa.field(c.name, arrow_type(t)) for c, t in zip(sharding.partial, types, strict=True)]
        return pa.schema(fields if sharding.has_partial_rows else [*fields, pa.field(WEIGHT, pa.int64())])

    def change(self) -> pa.Table | None:
        """The change of the view's own rows since the last call, weights last; None if nobody follows it.

        Rows of a view with parameters have these in front. Of groups that are spread over shards it is the change of
        partial rows.
        """
        if self._feed is None or self.sharding is None:
            return None
        assert self._view is not None
        if not self.sharding.has_partial_rows:
            schema = change_schema(self.sharding)
            found = delta_table(self._feed, self._view.change_schema, WEIGHT)
            return pa.Table.from_arrays(found.columns, schema=schema)
        partial = self.partial_schema(self.sharding)
        changes = delta_table(self._feed, partial, WEIGHT)
        if needs_merging(self.sharding):
            return changes
        rows = finish(self.sharding, changes.drop_columns([WEIGHT]))
        return consolidated(rows.set_column(rows.num_columns - 1, WEIGHT, changes.column(WEIGHT)))

    def parts_of(self, keys: pa.Table) -> pa.Table:
        """The rows as `change` gives them, all with their present weights, that have the keys of given rows.

        Linear in the view's rows here, or in those of the access requests among the keys.
        """
        assert self.sharding is not None
        inputs = keys.column_names[: len(self.sharding.query.input)]
        if not inputs:
            return _having(self._weighted_parts({}), keys)
        requests = _distinct(keys.select(inputs)).to_pylist()
        found = [change_schema(self.sharding).empty_table()]
        for request in requests:
            rows = self._weighted_parts(dict(zip(self.sharding.query.parameters, request.values(), strict=True)))
            given = [pa.array([request[name]] * rows.num_rows, keys.schema.field(name).type) for name in inputs]
            found.append(pa.table([*given, *rows.columns], schema=found[0].schema))
        return _having(pa.concat_tables(found), keys)

    def _weighted_parts(self, parameters: Mapping[str, Any]) -> pa.Table:
        rows = self.rows(parameters)
        partial = self.sharding is not None and self.sharding.has_partial_rows
        return with_weights(rows, np.ones(rows.num_rows, np.int64)) if partial else rows


def _distinct(rows: pa.Table) -> pa.Table:
    groups, _ = group_numbers(rows)
    return rows.take(pa.array(np.unique(groups, return_index=True)[1]))


def _having(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows whose keys are among those given; NULL is a key as any other."""
    if not keys.column_names:
        return rows
    numbers, _ = group_numbers(pa.concat_tables([keys, rows.select(keys.column_names)]))
    wanted = np.isin(numbers[keys.num_rows :], numbers[: keys.num_rows])
    return rows.filter(pa.array(wanted))


def change_schema(sharding: Sharding) -> pa.Schema:
    """The columns of a view's changes: its parameters, its own columns, and the weight."""
    query = sharding.query
    names = [column.name for column in query.head]
    fields = [
        pa.field(f":{name}" if name in names else name, arrow_type(sharding.typed.types[variable]))
        for name, variable in zip(query.parameters, query.input, strict=True)
    ]
    fields += [pa.field(name, arrow_type(type_)) for name, type_ in zip(names, sharding.typed.head, strict=True)]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64())])
