"""What there is in a database: tables, views, what maintains them, and who follows or reads them."""

from __future__ import annotations

import warnings
import weakref
from collections import deque
from collections.abc import Callable, Collection, Container
from functools import partial
from typing import TYPE_CHECKING

from ivme.engine.ingest.row_batch import Inputs, Layout
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.memory import memory_of
from ivme.engine.runtime.positions import Positions
from ivme.engine.runtime.reclaim import ROWS_BETWEEN, Holder
from ivme.engine.runtime.stored_sums import check_row
from ivme.engine.runtime.transaction import StateLock
from ivme.errors import PlanError
from ivme.query.functions.running import RUNNING

if TYPE_CHECKING:
    from ivme._kernel import RowGate
    from ivme.engine.backend import Backend
    from ivme.engine.codes.domains import Domains
    from ivme.engine.expression.feed_column import FeedColumn
    from ivme.engine.ingest.feed import Feed
    from ivme.engine.runtime.build_beside import BuildBeside
    from ivme.engine.runtime.delta import Delta
    from ivme.engine.runtime.image import Image
    from ivme.engine.runtime.journal import Journal
    from ivme.engine.runtime.open_read import OpenRead
    from ivme.engine.runtime.participant import MaintainedView
    from ivme.engine.runtime.shared_views import SharedViews
    from ivme.engine.runtime.single_row import SingleRowPath
    from ivme.engine.runtime.view_chain import Chain
    from ivme.engine.runtime.view_state import TableState, ViewState
    from ivme.query.model import Table

USES_BETWEEN = 4096
"""So many rows are written, and requests answered, before anybody looks whether plans suit what views are used for."""

MOST_USES = 256
"""A batch counts for so many at most: to look at plans takes as long as to write some hundred rows."""

_UNREAD = (
    "the rows that it has taken cannot be read again: read its views instead, and create new ones before its first rows"
)


class Catalog:
    """What there is in a database. Its callers hold `lock`."""

    def __init__(self, backend: Backend, domains: Domains) -> None:
        self.backend = backend
        self.domains = domains
        self.lock = StateLock()
        self.tables: dict[str, TableState] = {}
        self.views: dict[str, ViewState] = {}
        self.positions = Positions()
        self.journal: Journal | None = None
        self.image: Image | None = None
        self.memory_limit: int | None = None
        self.is_limited = False
        self.participants: dict[str, MaintainedView] = {}
        self.open_reads: dict[int, weakref.ref[OpenRead]] = {}
        self.holders: weakref.WeakSet[Holder] = weakref.WeakSet()
        self.builds: weakref.WeakSet[BuildBeside] = weakref.WeakSet()
        self.shared: dict[tuple[str, ...], SharedViews] = {}
        self.groups_made = 0
        self.queues: dict[str, list[deque[Delta]]] = {}
        self._layouts: dict[str, Layout] = {}
        self._inputs: dict[str, Inputs] = {}
        self._read_columns: dict[str, set[str]] = {}
        self._plain: dict[str, bool] = {}
        self.chain: Chain | None = None
        self.single_rows: dict[str, SingleRowPath | None] = {}
        self.row_gate: RowGate | None = None
        if isinstance(backend, NativeBackend):
            self.row_gate = backend.row_gate(self.lock, self.open_reads, RUNNING, ROWS_BETWEEN)
        self.misfits: list[tuple[str, tuple[int, ...]]] = []
        self.revision = 0
        self.uses_left = USES_BETWEEN
        self.look_at_plans: Callable[[], object] = int

    def relation(self, name: str) -> Table:
        """The table of that name, or the view seen as one."""
        return self.tables[name].table if name in self.tables else self.views[name].table

    def check_kept(self, table: str, refused: str = _UNREAD) -> None:
        """Refuses what needs the rows of a table that has taken some and kept none of them; `refused` says what."""
        state = self.tables[table]
        if not state.table.keep_rows and self.backend.size(state.rows):
            raise PlanError(f"table {table} keeps no rows, so {refused}")

    def warn_if_lost(self, relation: str) -> None:
        """Warns that the rows of a table which does not keep them are gone, as there is no view to take them."""
        state = self.tables.get(relation)
        if state is not None and not state.table.keep_rows and not self.readers(relation):
            warnings.warn(
                f"table {relation} keeps no rows and has no views: the rows that it takes are lost; create its views "
                "first",
                stacklevel=2,
            )

    def layout(self, relation: str) -> Layout:
        """The columns of a table or view."""
        if relation not in self._layouts:
            self._layouts[relation] = Layout(self.relation(relation), self.domains)
        return self._layouts[relation]

    def change_layout(self, state: ViewState) -> Layout:
        """The columns of a view's changes: those of its parameters in front."""
        typed = state.typed
        given = zip(typed.query.parameters, typed.query.input, strict=True)
        return Layout(state.table, self.domains, [(name, typed.types[variable]) for name, variable in given])

    def inputs(self, relation: str) -> Inputs:
        """What the triggers of a relation want: first that of a table's own maps, then those of the groups."""
        found = self._inputs.get(relation)
        if found is None:
            found = self._inputs[relation] = self.wanted(relation, self.feeds(relation))
        return found

    def feeds(self, relation: str) -> list[tuple[str, Feed]]:
        """What each trigger of a relation wants."""
        groups = [group for group in self.shared.values() if group.reads(relation)]
        feeds = [(group.trigger(relation), group.feed(relation)) for group in groups]
        state = self.tables.get(relation)
        return feeds if state is None else [(state.rows, state.feed), *feeds]

    def wanted(self, relation: str, feeds: list[tuple[str, Feed]]) -> Inputs:
        """What triggers want of a relation's rows, in a form that knows whom to name if there is no such thing."""
        kind = "table" if relation in self.tables else "view"
        return Inputs(self.relation(relation), self.domains, feeds, partial(self._owner, relation), kind)

    def _owner(self, relation: str, column: FeedColumn) -> str:
        """A view that computes a column from a relation's rows, or nothing if it is not there yet."""
        for name, state in self.views.items():
            for atom in state.atoms:
                guarded = column.expression in atom.columns and column.guard == atom.where
                if atom.relation == relation and (guarded or column.expression == atom.where):
                    return name
        return ""

    @property
    def groups(self) -> list[SharedViews]:
        """The groups of views that are made of maps."""
        return list(self.shared.values())

    def complete_triggers(self) -> None:
        """Assembles what views that came or went have left for the next batch; see `SharedViews`."""
        for group in self.shared.values():
            group.complete_triggers()

    def rebalanced(self, relation: str | None = None) -> list[SharedViews]:
        """The groups of views with partitions; with a relation, those that read it."""
        return [g for g in self.shared.values() if g.rebalancer is not None and (relation is None or g.reads(relation))]

    def forget_inputs(self) -> None:
        """To be called whenever a trigger, a table or a view comes, goes or changes."""
        self.revision += 1
        self._layouts.clear()
        self._inputs.clear()
        self._read_columns.clear()
        self._plain.clear()
        self.chain = None
        self.single_rows.clear()
        if self.row_gate is not None:
            self.row_gate.forget()

    def note_uses(self, number: int) -> None:
        """Rows were written, or requests answered: now and then it is checked whether plans suit that."""
        self.uses_left -= min(number, MOST_USES)
        if self.uses_left <= 0:
            self.uses_left = USES_BETWEEN
            self.look_at_plans()

    def memory(self) -> dict[str, int]:
        """The bytes that rows take; see `memory_of`."""
        return memory_of(self)

    def forget_constants(self) -> None:
        """To be called before codes are taken back: those of constants, and of what is remembered, are found again."""
        self.domains.memos.forget()

    def readers(self, relation: str) -> list[str]:
        """The views that are built on a table or view."""
        found = [name for name, state in self.views.items() if relation in state.relations]
        return found + [
            name for name, each in self.participants.items() if relation in each.relations and name not in found
        ]

    def read_columns(self, relation: str) -> Container[str]:
        """The columns of a view that are read by views that take only what a table may hold."""
        found = self._read_columns.get(relation)
        if found is None:
            found = {column for _, feed in self.feeds(relation) for column in feed.read}
            takers = [each for each in self.participants.values() if relation in each.relations]
            if not all(getattr(each, "takes_nan", False) for each in takers):
                found.update(self.relation(relation).column_names)
            self._read_columns[relation] = found
        return found

    def is_plain(self, relation: str) -> bool:
        """Whether only the kernel's triggers have to know when a table changes: see `try_apply_plain`."""
        found = self._plain.get(relation)
        if found is None:
            found = self._plain[relation] = not self.rebalanced(relation) and self.is_quiet(relation)
        return found

    def is_quiet(self, relation: str) -> bool:
        """Whether nothing but the kernel's maps, and the parts of views, has to be looked at when a table changes."""
        return all(map(self._is_quiet, self.readers(relation)))

    def _is_quiet(self, view: str) -> bool:
        """Whether nothing but the kernel's maps has to be looked at when a view changes."""
        state = self.views.get(view)
        return view not in self.participants and state is not None and state.is_quiet

    def is_read_by_builds(self, relation: str) -> bool:
        """Whether a view is being built from a table: then its changes are batches, which are noted."""
        return any(build.reads(relation) for build in self.builds)

    def check_there(self, state: ViewState) -> None:
        """Raises PlanError if a view was dropped."""
        if self.views.get(state.name) is not state:
            raise PlanError(f"view {state.name} was dropped, or its database closed")

    def check_sums(self) -> None:
        """Raises DataError if the open transaction left a stored sum beyond the type in which a view shows it."""
        for name, codes in dict.fromkeys(self.backend.misfits()):
            for view in (view for group in self.groups for view in group.stored_sums.get(name, ())):
                check_row(self.views[view], codes)

    def let_reads_finish(self, relations: Collection[str] | None = None) -> None:
        """Before relations change, or with None anything: answers that are read from them are read to their end."""
        if not self.open_reads:
            return
        changed = set(relations or ())
        for state in self.views.values():
            if relations is None or changed.intersection(state.relations):
                changed.add(state.name)
        for known in tuple(self.open_reads.values()):
            read = known()
            if read is not None and (read.state.name in changed):
                read.finish()
