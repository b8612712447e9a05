"""Changes of the catalog that take effect as a whole, or not at all.

Tables and views come and go in many steps: names, groups, triggers, maps. Before the first of them, everything that
they may change is taken down; if they are not committed, it is put back as it was. What the kernel holds under no name
is dropped at the end, so that nothing that may be needed again is gone before.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.transaction import Act, Transaction, Undo
from ivme.engine.runtime.view_state import VIEW_CHANGES, TableState, ViewState


class CatalogChange(Transaction):
    """A change of the catalog under way."""

    __slots__ = ()


def catalog_change(catalog: Catalog, undo: Iterable[Act], then: Iterable[Act]) -> AbstractContextManager[object]:
    """A change of tables and views, made by a caller who holds the lock; a part of one that is under way."""
    lock = catalog.lock
    if isinstance(lock.pending, CatalogChange):
        lock.pending.then = (*lock.pending.then, *then)
        return nullcontext()
    catalog.let_reads_finish()
    backend = catalog.backend
    back: list[Act] = [backend.roll_back, backend.saved(), *_saved(catalog), *undo]
    if catalog.journal is not None:
        back.append(partial(catalog.journal.roll_back, catalog.journal.mark()))
    back += [partial(_follow, state) for state in catalog.views.values() if isinstance(state.group, ExternalView)]
    return CatalogChange(lock, [Undo([*back, backend.collect])], [*then, backend.collect])


def _saved(catalog: Catalog) -> list[Act]:
    names = ("tables", "views", "participants", "shared", "groups_made", "queues")
    acts = [saved(catalog, names), catalog.forget_inputs]
    acts += [saved(state, TableState.__slots__) for state in catalog.tables.values()]
    acts += [saved(state, VIEW_CHANGES) for state in catalog.views.values()]
    external = [state.group for state in catalog.views.values() if isinstance(state.group, ExternalView)]
    for group in (*catalog.groups, *external):
        acts.append(saved(group, vars(group)))
        if group.rebalancer is not None:
            acts.append(saved(group.rebalancer, vars(group.rebalancer)))
    return acts


def saved(held: object, names: Iterable[str]) -> Act:
    """Gives an object the attributes that it has now, and the dicts among them what they hold now."""
    names = tuple(names)
    values = [dict(value) if type(value) is dict else value for value in map(held.__getattribute__, names)]

    def put_back() -> None:
        for name, value in zip(names, values, strict=True):
            setattr(held, name, value)

    return put_back


def _follow(state: ViewState) -> None:
    assert isinstance(state.group, ExternalView)
    state.group.follow(state.followers > 0)
