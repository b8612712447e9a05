"""Views on views that the kernel keeps without Python: a row of a table passes all of them in one call.

Between a table and what is shown there may be blocks: unions, and views that others are built on. If the kernel can
tell the change of each of them, they are a chain, and tables whose rows meet no others take rows and record batches
like tables without blocks. Those who follow a view of it are told, too. Ordered maps, closures and the like are left
to `Runtime`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import ChainedView, deliveries
from ivme.engine.runtime.native_path import NativeBranch, NativePath, let_take_arrow, native_path, set_parts
from ivme.engine.runtime.transaction import Act, StateLock, Transaction
from ivme.engine.runtime.view_readers import point_reader

if TYPE_CHECKING:
    from ivme._kernel import ViewChain
    from ivme.engine.codes.dictionary import Codes
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.reclaim import Holder
    from ivme.engine.runtime.view_state import ViewState

Branches = dict[str, list[NativeBranch]]


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain, the numbers of the relations that it knows, and the tables whose rows it takes."""

    native: ViewChain
    relations: dict[str, int]
    views: dict[str, int]
    tables: frozenset[str]


def open_chained(catalog: Catalog, name: str) -> None:
    """Lets the kernel take rows and record batches of a table that views on views read, if it can."""
    gate, backend, state = catalog.row_gate, catalog.backend, catalog.tables.get(name)
    if gate is None or state is None or state.table.static or catalog.memory_limit is not None:
        return
    if catalog.is_read_by_builds(name) or not isinstance(backend, NativeBackend):
        return
    chain = catalog.chain = catalog.chain or _built(catalog, backend)
    if name not in chain.tables:
        return
    way = native_path(backend, catalog, name)
    if not _tell_emits(backend, chain, way):
        return
    set_parts(backend, catalog, name, way)
    way.path.set_chain(chain.native, chain.relations[name])
    end = None if catalog.journal is None else catalog.journal.end
    if catalog.journal is not None and (end is None or not way.path.set_log(end, name, json.dumps(name))):
        return
    let_take_arrow(backend, catalog, name, way)
    gate.set_path(name, way.path, not state.table.append_only, True)


def _built(catalog: Catalog, backend: NativeBackend) -> Chain:
    """The chain of all views that the kernel can take changes through."""
    from ivme import _kernel

    takeable = _takeable(catalog)
    tables = frozenset(name for name in catalog.tables if all(reader in takeable for reader in catalog.readers(name)))
    passing = {name: told for name, told in takeable.items() if told is not None}
    relations = {name: number for number, name in enumerate((*catalog.tables, *passing))}
    native = _kernel.ViewChain(backend.kernel)
    views = {name: _added(native, catalog, catalog.views[name], told) for name, told in passing.items()}
    _tell_followers(native, catalog, views)
    chain = Chain(native, relations, views, tables)
    for name, told in passing.items():
        if not isinstance(told, ChainedView):
            _add_branches(chain, name, told)
        way = native_path(backend, catalog, name)
        if not _tell_emits(backend, chain, way):
            return Chain(native, relations, views, frozenset())
        set_parts(backend, catalog, name, way)
        native.set_readers(views[name], way.path, relations[name], getattr(way.compute, "prepare", None))
    return chain


def _takeable(catalog: Catalog) -> dict[str, ChainedView | Branches | None]:
    """The views whose change the kernel can tell, and that of all views on them; None for those that have no followers.

    Views come behind those that they are built on.
    """
    found: dict[str, ChainedView | Branches | None] = {}
    for state in reversed(catalog.views.values()):
        if state.checks or state.lazy or not _is_balanced(state):
            continue
        if state.followed is None:
            if state.name not in catalog.participants:
                found[state.name] = None
            continue
        told = _told(state, bool(catalog.queues.get(state.name)))
        if told is not None and all(reader in found for reader in catalog.readers(state.name)):
            found[state.name] = told
    return dict(reversed(found.items()))


def _is_balanced(state: ViewState) -> bool:
    """Whether the kernel knows when the parts of a view, if it has any, are to be balanced."""
    rebalancer = state.group.rebalancer
    return rebalancer is None or rebalancer.native() is not None


def _told(state: ViewState, is_followed: bool) -> ChainedView | Branches | None:
    if not isinstance(state.group, ExternalView):
        return None if state.followed is None else state.followed.chained()
    if is_followed:
        return None
    branches = state.group.native_branches()
    for branch in (branch for each in (branches or {}).values() for branch in each):
        if branch.compute is not None and getattr(branch.compute, "program", None) is None:
            return None
    return branches


def _added(native: ViewChain, catalog: Catalog, state: ViewState, told: ChainedView | Branches) -> int:
    """The number of a view in the chain."""
    assert isinstance(catalog.backend, NativeBackend)
    names, read = state.table.column_names, catalog.read_columns(state.name)
    numbers = [position for position in state.floats if names[position] in read]
    if not isinstance(told, ChainedView):
        return native.add_view(len(names), [], False, True, numbers)
    number = native.add_view(told.width, told.places, told.hides, False, numbers)
    reader = catalog.backend.reader_number(point_reader(state.name))
    if told.is_distinct:
        native.set_distinct(number, reader)
    if told.kept is not None:
        native.set_groups(number, told.kept, reader, told.values, told.nothing)  # type: ignore[arg-type]
    return number


def _tell_followers(native: ViewChain, catalog: Catalog, views: Mapping[str, int]) -> None:
    """Lets a chain tell those who follow its views, as long as these are the ones."""
    followed: dict[int, tuple[Layout, list[deque[Delta]]]] = {}
    for name, number in views.items():
        state, queues = catalog.views[name], catalog.queues.get(name)
        if queues and state.followed is not None:
            followed[number] = state.followed.layout, queues
            native.set_told(number)
    if followed:
        native.set_teller(catalog.lock, partial(_announced, catalog.lock, catalog.holders, followed))


def _announced(
    lock: StateLock,
    holders: WeakSet[Holder],
    followed: Mapping[int, tuple[Layout, list[deque[Delta]]]],
    told: Sequence[tuple[int, list[Codes]]],
) -> Transaction:
    """What is left to do once the changes of followed views are committed."""
    acts: list[Act] = []
    for number, (*columns, weights) in told:
        layout, queues = followed[number]
        acts += deliveries(holders, queues, RowBatch(layout, weights, None, list(columns)))
    done = Transaction(lock, (), acts)
    done.committed = True
    return done


def _add_branches(chain: Chain, union: str, branches: Branches) -> None:
    for relation, each in branches.items():
        for compute, columns, test, factor in each:
            program, prepare = getattr(compute, "program", None), getattr(compute, "prepare", None)
            if relation in chain.relations:
                number = chain.relations[relation]
                chain.native.add_branch(number, chain.views[union], program, prepare, columns, test, factor)


def _tell_emits(backend: NativeBackend, chain: Chain, way: NativePath) -> bool:
    """Says which views triggers tell of; False if one is not in the chain."""
    for trigger, number in zip(way.triggers, way.numbers, strict=True):
        views = [view for view, _ in backend.emits(trigger)]
        if not all(view in chain.views for view in views):
            return False
        chain.native.set_emits(number, [chain.views[view] for view in views])
    return True
