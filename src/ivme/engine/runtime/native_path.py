"""The way of a relation's rows through its triggers, as the kernel has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ivme.engine.expression.computed import ComputedColumns, computed_columns
from ivme.engine.ingest.row_batch import plain_position
from ivme.engine.ingest.row_columns import row_columns
from ivme.engine.runtime.external_view import ExternalView
from ivme.errors import DataError

if TYPE_CHECKING:
    from ivme._kernel import RowPath
    from ivme.engine.expression.feed_column import FeedColumn
    from ivme.engine.native_backend import NativeBackend
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.view_state import TableState
    from ivme.query.model import Table

Codes = tuple[int, ...]


class NativeBranch(NamedTuple):
    """A branch of a union: where its columns, its test and its factor are among a row's codes, or -1."""

    compute: ComputedColumns | None
    columns: list[int]
    test: int
    factor: int


@dataclass(frozen=True, slots=True)
class NativePath:
    """What takes a relation's rows through their triggers, and what that is made of."""

    path: RowPath
    compute: ComputedColumns | None
    triggers: list[str]
    numbers: list[int]
    picks: list[list[int]]
    places: dict[FeedColumn, int]
    width: int


def native_path(backend: NativeBackend, catalog: Catalog, name: str) -> NativePath:
    """The way of the rows of a table or view."""
    table, layout, feeds = catalog.relation(name), catalog.layout(name), catalog.feeds(name)
    wanted = list(dict.fromkeys(column for _, feed in feeds for column in feed.columns))
    computed = [column for column in wanted if plain_position(column, table) is None]
    compute = computed_columns(table, computed, catalog.domains) if computed else None
    places = feed_places(wanted, table)
    picks = [[places[column] for column in feed.columns] for _, feed in feeds]
    numbers = [backend.number(trigger) for trigger, _ in feeds]
    path = backend.row_path(
        row_columns(table, layout.domains),
        None if compute is None else getattr(compute, "program", None),
        None if compute is None else _computed(compute),
        list(zip(numbers, picks, strict=True)),
    )
    width = max([len(table.columns), *(place + 1 for place in places.values())])
    return NativePath(path, compute, [trigger for trigger, _ in feeds], numbers, picks, places, width)


def set_parts(backend: NativeBackend, catalog: Catalog, name: str, way: NativePath) -> bool:
    """Tells a path of the heavy and light parts of views; False if each row has to come to Python for one of them."""
    all_known = True
    for group in catalog.rebalanced(name):
        number = way.triggers.index(group.trigger(name))
        light = group.light_trigger(name)
        if light is not None and all(column in way.places for column in light.feed.columns):
            picked = [way.places[column] for column in light.feed.columns]
            way.path.set_light(number, backend.number(light.name), picked, backend.map_numbers(light.empty))
        balance = None if group.rebalancer is None else group.rebalancer.native()
        if balance is not None:
            way.path.set_balance(number, balance)
        all_known = all_known and balance is not None
    return all_known


def let_take_arrow(backend: NativeBackend, catalog: Catalog, name: str, way: NativePath) -> None:
    """Lets a path take record batches of a table, if the kernel can encode them."""
    encoder, table = catalog.layout(name).encoder, catalog.relation(name)
    if encoder is not None:
        prepare = getattr(way.compute, "prepare", None)
        unread = _unread_columns(catalog, name)
        if table.keep_rows:
            loose, unread = _loose_columns(backend, catalog.tables[name], unread), []
        else:
            loose = []
        way.path.take_arrow(encoder, list(table.key_positions), prepare, loose, unread)


def _unread_columns(catalog: Catalog, name: str) -> list[int]:
    """The columns that only the table itself takes."""
    state = catalog.tables[name]
    names = state.table.column_names
    read = {column for trigger, feed in catalog.feeds(name) if trigger != state.rows for column in feed.read}
    for participant in (each for each in catalog.participants.values() if name in each.relations):
        own = participant.read_of(name) if isinstance(participant, ExternalView) else None
        read.update(names if own is None else own)
    return [position for position, column in enumerate(names) if column not in read]


def _loose_columns(backend: NativeBackend, state: TableState, unread: Sequence[int]) -> list[int]:
    """Those of strings that nobody reads: the table need not know which of them are equal."""
    return [position for position in unread if backend.let_be_loose(state.rows, position, state.domains[position])]


def feed_places(wanted: Sequence[FeedColumn], table: Table) -> dict[FeedColumn, int]:
    """Where each column of the feeds is among a row's codes; those that are computed come behind the row's own."""
    places: dict[FeedColumn, int] = {}
    computed = len(table.columns)
    for column in wanted:
        position = plain_position(column, table)
        places[column] = computed if position is None else position
        computed += position is None
    return places


def _computed(compute: ComputedColumns) -> Callable[[Codes], Codes | None]:
    """All codes of a row; None where an expression has no value."""

    def computed(codes: Codes) -> Codes | None:
        try:
            return compute.row(codes)
        except DataError:
            return None

    return computed
