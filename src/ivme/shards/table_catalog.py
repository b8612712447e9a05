"""The tables of a sharded database: made, dropped, and given further columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ivme.database import Database
from ivme.definitions.clock import START
from ivme.errors import PlanError, still_needed
from ivme.query.model import Table
from ivme.query.names import CLOCK
from ivme.query.table import References, promises
from ivme.query.types import Type
from ivme.shards.function_catalog import FunctionCatalog
from ivme.shards.sharding import sharding


class TableCatalog(FunctionCatalog):
    """The part of `ShardedDatabase` that is about tables. An embedded database without rows checks the requests."""

    @abstractmethod
    def _check_new(self, name: str) -> None: ...

    def create_table(
        self,
        name: str,
        schema: Mapping[str, str | Type],
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
        keep_rows: bool = True,
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        """Declares an empty table, as `Database.create_table` does; it has to keep its rows."""
        if not keep_rows:
            raise PlanError(f"table {name} has to keep its rows over shards, which move them; leave keep_rows out")
        with self._lock:
            self._check_new(name)
            with Database() as checked:
                checked.create_table(
                    name,
                    schema,
                    primary_key=primary_key,
                    append_only=append_only,
                    static=static,
                    references=references,
                    unique=unique,
                    not_null=not_null,
                    defaults=defaults,
                )
                (made,) = checked.definitions.relations()
            self._change_catalog(self._catalog.with_table(made))

    def add_column(self, table: str, name: str, type: str | Type, default: object = None) -> None:
        """Adds a column to a table, after the others; existing rows have the default in it.

        Each shard fills it in its own rows, and builds the views on the table again from those that it has. A view
        whose text would mean something else with the column has to be dropped before.
        """
        with self._lock:
            old = self._catalog.table(table)
            with self._known(with_views=bool(self._views_on(old.name))) as checked:
                checked.add_column(old.name, name, type, default)
                new = checked.relation(old.name)
            if any(each.is_time for _, each in new.defaults):
                raise PlanError(f"the default of column {name} is the time, which each shard would take for itself")
            made = replace(new, defaults=(*old.defaults, *new.defaults))
            self._change_catalog(self._catalog.with_more_columns(made))

    def _known(self, *, with_views: bool) -> Database:
        """An embedded database with the same tables and views, and no rows."""
        catalog = self._catalog
        known = Database(functions=[each.user_function() for each in catalog.functions], replan=False)
        if any(table.name == CLOCK for table in catalog.tables):
            known.advance(START)
        for table in catalog.tables:
            if table.name != CLOCK:
                types = {column.name: column.type for column in table.columns if column.type is not None}
                known.create_table(table.name, types, **promises(table))
        for view in catalog.shown if with_views else ():
            known.create_view(view.name, view.text, **dict(view.options))
        return known

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows; one that views are built on is refused."""
        with self._lock:
            name = self._catalog.table(name).name
            needed = self._views_on(name)
            if needed:
                raise still_needed("drop", "table", name, needed)
            self._change_catalog(self._catalog.without_table(name))

    def _views_on(self, table: str) -> list[str]:
        """The views that need a table."""
        catalog = self._catalog
        needed = (view.view for view in catalog.views if table in sharding(view, catalog.tables).needed)
        return list(dict.fromkeys(needed))

    def relation(self, name: str) -> Table:
        """What is declared of a table."""
        return self._catalog.table(name)
