"""The tables and views of a database by name: how they are made, found and dropped.

`Database` is what users see of it. The packages around the database (`store`, `serve`, `cli`, `shards`) use this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace as with_fields
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ivme.budget import claim
from ivme.definitions.clock import make_clock, warn_if_unset
from ivme.definitions.function_definitions import FunctionDefinitions, mentions, waiting_views
from ivme.definitions.known_names import check_sources, is_map_view, refuse_tables_of
from ivme.definitions.known_names import known as known
from ivme.definitions.new_runtime import new_runtime
from ivme.definitions.user_functions import UserFunction, functions_of
from ivme.engine.runtime.altered_tables import change_columns, rename_table
from ivme.engine.runtime.catalog_change import saved
from ivme.engine.runtime.reclaim import reclaim
from ivme.engine.runtime.transaction import Act
from ivme.errors import PlanError, SchemaError, UnknownNameError, still_needed
from ivme.query.block_names import view_of_block
from ivme.query.functions import Function
from ivme.query.functions.running import refuse_within_functions
from ivme.query.model import Table, check_table
from ivme.query.names import CLOCK, check_name
from ivme.store.broken_views import broken_source, whole

if TYPE_CHECKING:
    from ivme.compile import CompiledView
    from ivme.definitions.reading_once import OneReads
    from ivme.definitions.replanning import Replanning
    from ivme.plan.assemble.points import Observation
    from ivme.query.read_select import ReadSelect
    from ivme.store.store import Store
    from ivme.view import View
    from ivme.views.base_view import BaseView
    from ivme.views.ies_view import IesView
    from ivme.views.ring_view import RingView


class Definitions:
    """What is defined in a database. `views` can be read; `broken` says why the others could not be built.

    While `is_opening`, names of stored views are not judged again.
    """

    def __init__(self, *, is_opening: bool, functions: Iterable[UserFunction] | None = None) -> None:
        self.runtime = new_runtime()
        self.catalog = self.runtime.catalog
        self.views: dict[str, BaseView] = {}
        self.broken: dict[str, str] = {}
        self.functions = FunctionDefinitions(functions)
        self.store: Store | None = None
        self.is_opening = is_opening
        self.is_closed = False
        self.replans = False
        self.warns_of_clock = False

    @cached_property
    def replanning(self) -> Replanning:
        """Replans views; in the background, if the database `replans`."""
        from ivme.definitions.replanning import Replanning

        made = Replanning(self)
        if self.replans:
            made.start()
        return made

    def create_table(self, made: Table, *, replace: bool = False) -> None:
        """Adds an empty table, with `replace` in the place of the one of that name."""
        self.check_new(made.name, self.catalog.tables if replace else (), "table")
        check_table(made)
        with self.runtime.lock, self.change():
            old = next((each for each in self.catalog.tables if each.lower() == made.name.lower()), None)
            if old is not None:
                self._drop_table(old, "replace")
            self.runtime.installation.add_table(made)
            if self.store is not None:
                self.store.create_table(made, replaced=old)
        self.runtime.wait_durable()

    def create_view(
        self,
        name: str,
        query: str,
        options: Mapping[str, object],
        stored: str | None = None,
        replanned: Callable[[str], None] | None = None,
        *,
        replace: bool = False,
    ) -> View:
        """Plans a view, unless its stored plan can be used, and installs it; `replanned` is told a new plan.

        With `replace` it takes the place of the view of that name, all or nothing; a view that others are built on is
        refused.
        """
        from ivme.definitions.installing import install_view, start_build
        from ivme.definitions.measuring import measured

        self.check_new(name, (*self.views, *self.broken) if replace else (), "view")
        if self.store is not None and not isinstance(query, str):
            raise PlanError(f"view {name} is stored in a directory: give its query as a string")
        made: View | None = None
        while made is None:
            planned, relations, called = self.planned(name, query, options, stored)
            make_clock(self, planned.sources)
            text = None if self.store is None or called else planned.text()  # code is not stored, also not in plans
            build = None if self.is_opening else start_build(self.runtime, planned)
            with self.runtime.lock:
                if self.are_current(planned.sources, relations) and self.are_defined(called):
                    self.check_new(name, replaced=(*self.views, *self.broken) if replace else ())
                    with self.change():
                        there = (*self.views, *self.broken)
                        old = next((each for each in there if each.lower() == name.lower()), None)
                        replaced = old is not None and self._drop_view(old, "replace")
                        made = install_view(self.runtime, planned, build)
                        claim()
                        self.functions.users[name] = tuple(called)
                        made.calls = tuple(each.called_as for each in called.values())
                        made.made_with = (query, dict(options))
                        made.analysed = partial(measured, self, name, query, options)
                        if self.store is not None:
                            signatures = [each.plain() for each in self.functions.called_by(name)]
                            known_as = old if replaced else None
                            self.store.create_view(name, query, options, text, signatures, replaced=known_as)
                        self.views[name] = made
                        if any(each.name == CLOCK for each in planned.sources):
                            made.before_reading = partial(warn_if_unset, self, name)
                        made.before_following = partial(self.replanning.follow, name)
                    if not self.is_opening:
                        self.replanning.begin(name)
        if planned.is_new and replanned is not None and not called:
            replanned(planned.text())
        self.runtime.wait_durable()
        return made

    def planned(
        self,
        name: str,
        query: str | ReadSelect,
        options: Mapping[str, object],
        stored: str | None = None,
        observed: Mapping[str, Observation] | None = None,
    ) -> tuple[CompiledView, tuple[Table, ...], dict[str, Function]]:
        """A view over all other relations, these relations, and the users' functions that it calls.

        It is planned for what was `observed` of it and its blocks, if that is given.
        """
        from ivme.compile import Request, compile_view

        with self.runtime.lock:
            relations = tuple(each for each in self.relations() if each.name.lower() != name.lower())
            installed = self.runtime.installation.installed()
            rows = {each: self.runtime.backend.size(state.rows) for each, state in self.catalog.tables.items()}
        defined = dict(self.functions.defined)
        request = Request(query, relations, options, name, installed, self.is_opening, stored, defined, rows)
        request = request if observed is None else with_fields(request, observed=observed)
        with self.naming_broken_views():
            if not relations:
                refuse_tables_of(query, defined)
            planned = compile_view(request)
        return planned, relations, {each.called_as.lower(): each for each in functions_of(planned)}

    def compiled(self, query: str, options: Mapping[str, object], hidden: Collection[str] = ()) -> CompiledView:
        """The view that a query would be, over all relations but the `hidden` ones; nothing is made."""
        from ivme.compile import Request, compile_view

        with self.runtime.lock:
            relations = tuple(each for each in self.relations() if each.name not in hidden)
            functions = dict(self.functions.defined)
        if not relations:
            refuse_tables_of(query, functions)
        return compile_view(Request(query, relations, options, functions=functions))

    @cached_property
    def one_reads(self) -> OneReads:
        """Answers SELECTs that run once."""
        from ivme.definitions.reading_once import OneReads

        return OneReads(self)

    def view(self, name: str) -> BaseView:
        """The view of that name; `BrokenViewError` if it could not be built."""
        return self.views[whole(known(name, (*self.views, *self.broken), "view"), self.broken)]

    def map_view(self, name: str) -> View:
        """The same for callers that need the rows of a query; views of rings and of users' SQL are refused."""
        view = self.view(name)
        if not is_map_view(view):
            raise PlanError(f"view {view.name} is maintained by {view.explain().strategy} in Python; read it there")
        return view

    @property
    def map_views(self) -> list[str]:
        """The names of these views, in the order in which they were made."""
        return [name for name, view in self.views.items() if is_map_view(view)]

    def drop_view(self, name: str) -> None:
        """Forgets a view of any kind; one that others are built on is refused."""
        with self.runtime.lock:
            name = known(name, (*self.views, *self.broken), "view")
            with self.change():
                if self._drop_view(name) and self.store is not None:
                    self.store.drop("view", name)
            reclaim(self.catalog)
        self.runtime.wait_durable()

    def _drop_view(self, name: str, act: str = "drop") -> bool:
        """Forgets a view, as a part of a change of the catalog; whether its directory keeps it, and has to be told."""
        self._refuse_while_needed("view", name, act)
        view = self.views.get(name)
        then: list[Act] = [partial(self._forget_definition, name), *([] if view is None else [view.end])]
        with self.change(*then):
            if view is not None:
                self.forget_view(name)
                del self.views[name]
            self.functions.users.pop(name, None)
        return view is None or view.is_stored

    def table(self, name: str) -> Table:
        """The table of that name."""
        return self.catalog.tables[known(name, self.catalog.tables, "table")].table

    def change_columns(self, new: Table, places: Sequence[int | None], default: object) -> None:
        """Gives a table other columns; see `altered_tables.change_columns`. The caller holds the lock."""
        with self.change():
            if self.store is not None:
                self.store.change_columns(new, places, default)
            change_columns(self.runtime.installation, new, places, default)

    def rename_table(self, name: str, to: str) -> None:
        """Gives a table another name, also where other tables reference it; one that views read is refused."""
        with self.runtime.lock:
            name = known(name, self.catalog.tables, "table")
            self.check_new(to, replaced=[name])
            self._refuse_while_needed("table", name, "rename")
            with self.change():
                if self.store is not None:
                    self.store.rename_table(name, to)
                rename_table(self.runtime.installation, name, to)
        self.runtime.wait_durable()

    def drop_table(self, name: str) -> None:
        """Drops a table and its rows, unless views read it."""
        with self.runtime.lock:
            name = known(name, self.catalog.tables, "table")
            with self.change():
                self._drop_table(name)
                if self.store is not None:
                    self.store.drop("table", name)
            reclaim(self.catalog)
        self.runtime.wait_durable()

    def _drop_table(self, name: str, act: str = "drop") -> None:
        """Forgets a table, as a part of a change of the catalog; its directory has to be told."""
        self._refuse_while_needed("table", name, act)
        self.runtime.installation.drop_table(name)

    def close(self) -> None:
        """Ends everything: views answer no more."""
        refuse_within_functions()
        if "replanning" in vars(self):
            self.replanning.close()
        with self.runtime.lock:
            for view in self.views.values():
                view.end("cannot be read: its database was closed")
            self.is_closed = True
        try:
            if self.store is not None:
                self.store.close()
        finally:
            with self.runtime.lock:
                self.runtime.installation.close()

    def add_participant(self, view: RingView | IesView) -> None:
        with self.change():
            self.runtime.installation.add_participant(view)
            self.views[view.name] = view

    def change(self, *then: Act) -> AbstractContextManager[object]:
        """What is done to tables and views in this block takes effect as a whole, or not at all."""
        return self.runtime.installation.catalog_change(
            [saved(self, ["views"]), saved(self.functions, ["users"])], then
        )

    def are_defined(self, called: Mapping[str, Function]) -> bool:
        """Whether the functions that were planned with are still those that there are."""
        return all(self.functions.defined.get(name) is function for name, function in called.items())

    def forget_view(self, name: str) -> None:
        """Drops a view with its blocks, and the closures that only it reads."""
        from ivme.closure.install import drop_closures

        blocks = self.blocks_of(name)
        for each in (name, *reversed(blocks)):
            state = self.catalog.views.get(each)
            relations = () if state is None else state.relations
            self.runtime.installation.drop_view(each)
            closures = [relation for relation in relations if relation not in (*self.views, *blocks)]
            drop_closures(self.runtime, closures)

    def owner(self, name: str) -> str:
        """The view that a block belongs to; any other name as it is."""
        view = view_of_block(name)
        return view if name not in self.views and view in self.views else name

    def blocks_of(self, name: str) -> list[str]:
        """The names of the blocks of a view, in the order in which they were made."""
        return [each for each in self.catalog.views if each not in self.views and view_of_block(each) == name]

    def _forget_definition(self, name: str) -> None:
        """A view that is dropped is not stored any more, whether it was broken or not, unless it was replaced."""
        self.broken.pop(name, None)
        if self.store is not None and name not in self.views:
            self.store.forget_view(name)

    @property
    def log_bytes(self) -> int | None:
        """The size of the log that has to be read on opening; None for a database in memory."""
        return None if self.store is None else self.store.log.size

    # Names

    def relations(self) -> tuple[Table, ...]:
        """Everything that a view may read: tables, and views as if they were tables."""
        views = (
            state.table
            for name, state in self.catalog.views.items()
            if (self.views[name].is_stored if name in self.views else view_of_block(name) not in self.views)
        )
        return (*(state.table for state in self.catalog.tables.values()), *views)

    def check_open(self) -> None:
        """Raises PlanError if the database is closed, and DataError within a user's function, which may not use it."""
        refuse_within_functions()
        if self.is_closed:
            raise PlanError("the database is closed")

    def check_new(self, name: str, replaced: Iterable[str] = (), made: str = "") -> None:
        """Raises SchemaError if there is a table or view of that name, or if no table or view may have it.

        Those that may be `replaced` are not in the way; what is `made`, a table or a view, could replace its like.
        """
        self.check_open()
        if not self.is_opening:
            check_name(name, "a table or view")
        kinds = {"table": self.catalog.tables, "view": (*self.catalog.views, *self.views), "broken view": self.broken}
        given_up = {each.lower() for each in replaced}
        for kind, others in kinds.items():
            if name.lower() in {other.lower() for other in others} - given_up:
                instead = (
                    "replace it (replace=True, CREATE OR REPLACE), drop it first" if kind == made else "drop it first"
                )
                raise SchemaError(f"there is already a {kind} named {name}; {instead} or choose another name")

    def are_current(self, tables: Iterable[Table], before: Iterable[Table]) -> bool:
        """Whether tables and views are declared as they were before, and can be read; under the lock."""
        names = {table.name for table in tables}
        check_sources(self.catalog, tables)
        return {each for each in before if each.name in names} == {e for e in self.relations() if e.name in names}

    @contextmanager
    def naming_broken_views(self) -> Iterator[None]:
        """Says why a name is unknown, if it is that of a broken view."""
        try:
            yield
        except UnknownNameError as error:
            raise broken_source(error, self.broken) or error from None

    def _refuse_while_needed(self, kind: str, name: str, act: str = "drop") -> None:
        needed: dict[str, None] = {}
        for found in map(self.owner, self.catalog.readers(name)):
            hidden = found not in self.views
            needed |= dict.fromkeys(map(self.owner, self.catalog.readers(found)) if hidden else [found])
        needed |= dict.fromkeys(view.name for view in waiting_views(self) if mentions(view.query, name))
        if needed:
            raise still_needed(act, kind, name, needed)
