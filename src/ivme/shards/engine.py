"""One engine of a shard: an embedded database with the tables that one pattern of a view reads, and the view.

The engine of a table has the table alone: it checks primary keys and deletes, and it is what views are built from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.changes import Changes
from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_type, declared_type
from ivme.engine.codes.nested_values import arrow_array
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.delta import Delta, delta_table
from ivme.errors import IvmeError
from ivme.plan.explain.explanation import Explanation
from ivme.query.inference import head_types
from ivme.query.model import Table
from ivme.query.table import promises
from ivme.shards.distribute import with_weights
from ivme.shards.engine_plans import create_view
from ivme.shards.functions import defined
from ivme.shards.merge import WEIGHT, consolidated, finish, group_numbers
from ivme.shards.parts import EngineKey
from ivme.shards.sharding import Sharding, needs_merging
from ivme.shards.sum_bounds import is_large, largest_part, watched_sums
from ivme.shards.table_changes import read_change, row_batch
from ivme.view import View
from ivme.views.closure_view import ClosureView


class Engine:
    """An embedded database for one `EngineKey`."""

    def __init__(self, tables: Mapping[str, str], declared: Sequence[Table], sharding: Sharding | None = None) -> None:
        """`tables` maps the engine's tables to the relations that their rows come from."""
        self.relations = dict(tables)
        self.sharding = sharding
        self._declared = tuple(declared)
        called = () if sharding is None else sharding.functions
        self._database = Database(functions=[each.user_function() for each in called], replan=False)
        self._database.definitions.warns_of_clock = False
        self._database.definitions.functions.defined.update(defined(called))  # those that the parsed query calls
        self._view: View | None = None
        self._feed: Changes | None = None
        self._is_followed = False
        self._sums = watched_sums(sharding)
        self._largest = 0.0
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

    def grown(self, table: Table) -> Engine:
        """The engine of a table with what it has now, which is this one unless columns were added."""
        return self if self._has_columns([table]) else self._moved_to(Engine.of_table(table))

    def grown_view(self, sharding: Sharding) -> Engine:
        """The engine of a view as `grown`; where its tables have more columns, the view is to be completed again."""
        return self if self._has_columns(sharding.engine_tables()) else self._moved_to(Engine.of_view(sharding))

    def _has_columns(self, tables: Sequence[Table]) -> bool:
        return [table.columns for table in self._declared] == [table.columns for table in tables]

    def _moved_to(self, made: Engine) -> Engine:
        """An engine of the same tables with more columns, and this one's rows: they have the defaults there."""
        declared = {table.name: table for table in made._declared}
        made.apply((name, _with_defaults(rows, declared[name])) for name, rows in self.contents())
        return made

    @staticmethod
    def of_view(sharding: Sharding) -> Engine:
        """The engine of a view, whose view is made by `complete` once its tables are filled, in bulk."""
        tables = {occurrence.table: occurrence.relation for occurrence in sharding.occurrences}
        return Engine(tables, sharding.engine_tables(), sharding)

    def complete(self, *, followed: bool) -> bool:
        """Makes the view, unless it is there, and follows it, or stops to; whether it is followed from now on."""
        if self.sharding is None:
            return False
        if self._view is None:
            with self._users_names():
                self._view = self._made(self.sharding)
            self._largest = largest_part(self._sums, self.rows({})) if self._sums else 0.0
        begins, self._is_followed = followed and not self._is_followed, followed
        if (followed or self._sums) and self._feed is None:
            self._feed = self._view.changes()
        elif not followed and not self._sums and self._feed is not None:
            self._feed.close()
            self._feed = None
        return begins

    @property
    def is_large(self) -> bool:
        """Whether sums of the view may not fit, though each shard's part of them does."""
        return self.sharding is not None and is_large(self._largest, self.sharding.routing.shards)

    def _made(self, sharding: Sharding) -> View:
        made: Any = None
        for name, query, options in sharding.engine_views():
            made = create_view(self._database, name, query, options)
        return made  # type: ignore[no-any-return]

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

    def apply(self, parts: Iterable[tuple[str, pa.Table]], clipped: Iterable[str] = ()) -> None:
        """Applies rows with weights to the engine's tables, all or nothing. What that changes is not told."""
        with self._users_names(), self._batch(parts, clipped):
            pass
        for delta in self._feed or ():
            if self._sums and self.sharding is not None:
                self._watch(delta_table([delta], self.partial_schema(self.sharding), WEIGHT))

    def hold(
        self,
        parts: Iterable[tuple[str, pa.Table]],
        clipped: Iterable[str],
        decide: Callable[[pa.Table | None], bool],
        *,
        checked: bool = False,
    ) -> bool:
        """Applies rows in a transaction that stays open until `decide` has said whether to keep it.

        It is given the change of the view, if that is followed, `checked`, or large with it.
        """
        before = self._largest

        def decided(changes: Mapping[str, Delta]) -> bool:
            change = self._change(changes)
            self._watch(change)
            return decide(change if self._is_followed or checked or self.is_large else None)

        with self._users_names():
            kept = self._batch(parts, clipped).hold(decided)
        if not kept:
            self._largest = before
        for _ in self._feed or ():  # known already
            pass
        return kept

    @contextmanager
    def _users_names(self) -> Iterator[None]:
        """Errors name relations as users know them: what feeds a view is one, and copies of a table are the table."""
        try:
            yield
        except IvmeError as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (self._in_users_names(error.args[0]), *error.args[1:])
            raise

    def _in_users_names(self, message: str) -> str:
        fed = set() if self.sharding is None else self.sharding.fed
        for table, relation in self.relations.items():
            if table != relation or relation in fed:
                kind = "view" if relation in fed else "table"
                message = re.sub(rf"\btable {re.escape(table)}(?![\w~#])", f"{kind} {relation}", message)
        return message

    def _watch(self, change: pa.Table | None) -> None:
        if self._sums and change is not None:
            self._largest = max(self._largest, largest_part(self._sums, change))

    def _batch(self, parts: Iterable[tuple[str, pa.Table]], clipped: Iterable[str]) -> Batch:
        lenient = {relation.lower() for relation in clipped}
        batch = self._database.batch().begin()
        for table, rows in parts:
            plain = rows.drop_columns([WEIGHT])
            batch.apply(table, plain, rows.column(WEIGHT).to_numpy())
            if self.relations[table].lower() in lenient:
                batch.delete(table, plain.slice(0, 0), strict=False)
        return batch

    @property
    def entries(self) -> int:
        return self._database.entries()

    def contents(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows of each table, with their multiplicities as last column."""
        for table in self.relations:
            yield table, with_weights(*self._database.contents(table))

    def rows_of_keys(self, table: str, keys: pa.Table) -> pa.Table:
        """The rows of a table that have the primary keys of some others; O(1) for each."""
        return self._database.table(table).of_keys(keys)

    def resolved(self, table: str, head: Mapping[str, Any], rows: pa.Table, before: pa.Table) -> pa.Table:
        """The rows that go and come, weights last, by a change that depends on what is in a table; none is changed.

        `rows` come with the change, and `before` is what its batch has done to the table so far.
        """
        runtime = self._database.definitions.runtime
        with runtime.lock:
            layout = runtime.catalog.layout(table)
            done = row_batch(before, layout) if before.num_rows else None
            found = read_change(head, rows, layout).resolved(runtime.catalog, runtime.catalog.tables[table], done)
            return with_weights(found.data, found.weights)

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

    def _change(self, changes: Mapping[str, Delta]) -> pa.Table | None:
        """The change of the view's own rows in an open transaction, weights last; None if it is not needed.

        Rows of a view with parameters have these in front. Of groups that are spread over shards it is the change of
        partial rows.
        """
        if self._feed is None or self.sharding is None:
            return None
        assert self._view is not None
        found = [changes[self._view.name]] if self._view.name in changes else []
        if not self.sharding.has_partial_rows:
            schema = change_schema(self.sharding)
            return pa.Table.from_arrays(delta_table(found, self._view.change_schema, WEIGHT).columns, schema=schema)
        rows = delta_table(found, self.partial_schema(self.sharding), WEIGHT)
        if needs_merging(self.sharding):
            return rows
        whole = finish(self.sharding, rows.drop_columns([WEIGHT]))
        return consolidated(whole.set_column(whole.num_columns - 1, WEIGHT, rows.column(WEIGHT)))

    def parts_of(self, keys: pa.Table) -> pa.Table:
        """The rows as `_change` gives them, all with their present weights, that have the keys of given rows.

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


def _with_defaults(rows: pa.Table, table: Table) -> pa.Table:
    """Rows with weights, and the defaults in the columns of the table that they lack."""
    values = dict(table.defaults)
    for column in table.columns[rows.num_columns - 1 :]:
        value = values[column.name].value if column.name in values else None
        filled = arrow_array([value] * rows.num_rows, declared_type(table, column))
        rows = rows.add_column(rows.num_columns - 1, column.name, filled)
    return rows


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


def large_views(engines: Mapping[EngineKey, Engine]) -> list[str]:
    """The views whose sums may not fit, as far as these engines know."""
    return sorted({key.name for key, engine in engines.items() if engine.is_large})
