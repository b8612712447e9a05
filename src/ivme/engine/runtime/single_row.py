"""The single-row path, for one row or a few: no Arrow, no batch, one kernel call for each row and trigger.

Whatever is out of the ordinary (a value that does not fit, a delete of what is not there, a view that is recomputed or
kept elsewhere) is left to the batch path, which also knows what to say about it; then nothing has been changed yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ivme.engine.backend import EmittedDelta
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Layout, RowBatch, plain_position
from ivme.engine.ingest.row_check import row_check
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.journal import Journal
from ivme.engine.runtime.transaction import Part, Transaction, Undo
from ivme.errors import DataError
from ivme.query.model import Table

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.view_state import ViewState

Row = tuple[Any, ...]
Codes = tuple[int, ...]

Emitted = dict[str, list[EmittedDelta]]
"""What triggers emitted, by view."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleRowPath:
    """The single-row path of a relation's rows; the caller of each holds the writers' lock."""

    check: Callable[[Any], Row | None]
    """A row as it is kept; None if the batch path has to take it."""

    encode: Callable[[Row], Codes | None]
    """The codes of a row that has been checked; None if the batch path has to take it."""

    completed: Callable[[RowBatch], list[Codes] | None]
    """The codes of rows that come as codes, with those of the expressions over them; None as before."""

    run: Callable[[Codes, int, Emitted], None]
    """Changes the multiplicity of a row in an open transaction, and notes what views emit that somebody follows."""

    apply: Callable[[Any, int], bool]
    """Changes the multiplicity of a row that nobody follows, as a transaction; False if the batch path has to."""

    log: RowLog | None

    followed: bool
    """Whether somebody follows a view that reads the relation."""

    coded: bool
    """Whether a row may have values that are not their own codes."""


MOST_SINGLE_ROWS = 16
"""Up to so many rows take the single-row path one by one, which is quicker than the batch path."""


class _FailureError(Exception):
    """A row for which an expression fails would be visible."""


class RowChange(NamedTuple):
    """A change of one row among a few: the row, which has been checked, and how it takes the single-row path."""

    table: str
    row: Row
    weight: int
    path: SingleRowPath


class RowLog:
    """Tells a journal about changes of a table's rows, which come as codes."""

    def __init__(self, journal: Journal, table: str, layout: Layout) -> None:
        self._journal = journal
        self._table = table
        self._decoders = [domain.decode_value for domain in layout.domains]
        self.mark, self.roll_back = journal.mark, journal.roll_back

    def append(self, codes: Codes, weight: int) -> None:
        row = tuple([decode(code) for decode, code in zip(self._decoders, codes, strict=False)])
        self._journal.row(self._table, row, weight)


def single_row(
    backend: NativeBackend, catalog: Catalog, name: str, views: Sequence[ViewState], log: RowLog | None
) -> SingleRowPath:
    """The single-row path for rows of a table or view that these views read.

    The groups `rebalanced` have partitions, and move keys if the row made them change sides. The `checks` must have no
    row in the end; if one has, the batch path raises the error.
    """
    lock, table, layout = catalog.lock, catalog.relation(name), catalog.layout(name)
    feeds, rebalanced = catalog.feeds(name), catalog.rebalanced(name)
    checks = [check for view in views for check in view.checks]
    followed = any(view.followers for view in views)
    check, encode, completed = _encoder(table, layout, catalog.domains, feeds)
    wanted = list(dict.fromkeys(column for _, feed in feeds for column in feed.columns))
    places = _places(wanted, table)
    width = max([len(table.columns), *(place + 1 for place in places.values())])
    picks = [[places[column] for column in feed.columns] for _, feed in feeds]
    numbers = [backend.number(name) for name, _ in feeds]
    runs = [(number, _picker(pick, width)) for number, pick in zip(numbers, picks, strict=True)]
    whole = list(range(width))
    run_all = backend.row_runs([(n, None if pick == whole else pick) for n, pick in zip(numbers, picks, strict=True)])
    refused = (backend.broken_check, backend.overflow, _FailureError)
    run_one = backend.run_one
    emits = [backend.emits(name) for name, _ in feeds]

    def run(codes: Codes, weight: int, emitted: Emitted) -> None:
        for (trigger, pick), emit in zip(runs, emits, strict=True):
            deltas = run_one(trigger, codes if pick is None else pick(codes), weight)
            for (view, schema), delta in zip(emit, deltas or (), strict=True):
                emitted.setdefault(view, []).append(EmittedDelta(view, schema, *delta))
        for group in rebalanced:
            group.settle(1)

    parts: list[Part] = [backend, *rebalanced]
    unlogged = Transaction(lock, parts)

    def change(codes: Codes, weight: int) -> None:
        """A row that takes more than the kernel's one call."""
        for group in rebalanced:
            group.begin()
        transaction = unlogged
        if log is not None:
            transaction = Transaction(lock, [*parts, Undo([partial(log.roll_back, log.mark())])])
        with transaction:
            backend.begin()
            run_all(codes, weight)
            for group in rebalanced:
                group.settle(1)
            for check in checks:
                if check.has_row():
                    raise _FailureError
            if log is not None:
                log.append(codes, weight)

    made = change if rebalanced or checks or log is not None else run_all

    def apply(row: Any, weight: int) -> bool:
        checked = check(row)
        codes = None if checked is None else encode(checked)
        if codes is None:
            return False
        try:
            made(codes, weight)
        except refused:
            return False
        return True

    coded = followed or not all(domain.orders_by_code for domain in layout.domains) or width > len(table.columns)
    return SingleRowPath(check, encode, completed, run, apply, log, followed, coded)


def _places(wanted: Sequence[FeedColumn], table: Table) -> dict[FeedColumn, int]:
    """Where each column of the feeds is among a row's codes; those that are computed come behind the row's own."""
    places: dict[FeedColumn, int] = {}
    computed = len(table.columns)
    for column in wanted:
        position = plain_position(column, table)
        places[column] = computed if position is None else position
        computed += position is None
    return places


def _picker(places: list[int], width: int) -> Callable[[Codes], Codes] | None:
    """Takes the codes that a trigger wants; None if it wants all."""
    if places == list(range(width)):
        return None
    if len(places) > 1:
        return itemgetter(*places)
    return lambda codes: tuple([codes[place] for place in places])


def _encoder(
    table: Table, layout: Layout, domains: Domains, feeds: Sequence[tuple[str, Feed]]
) -> tuple[Callable[[Any], Row | None], Callable[[Row], Codes | None], Callable[[RowBatch], list[Codes] | None]]:
    """The check of a row, and from a checked row, or from its codes, to these and those of the expressions over it."""
    arity = len(table.columns)
    wanted = dict.fromkeys(column for _, feed in feeds for column in feed.columns)
    computed = [column for column in wanted if plain_position(column, table) is None]
    if all(domain.type.kind == "int" for domain in layout.domains) and not computed:

        def integers(row: Any) -> Row | None:
            if type(row) is not tuple or len(row) != arity:
                return None
            for value in row:
                if type(value) is not int or not -INT_LIMIT <= value <= INT_LIMIT:
                    return None
            return row

        return integers, lambda row: row, _rows_of
    key = table.key_positions
    check, encoders = row_check(table), [domain.encode_value for domain in layout.domains]
    compute = computed_columns(table, computed, domains).row if computed else None

    def checked(row: Any) -> Row | None:
        if type(row) is not tuple or len(row) != arity:
            return None
        try:
            kept = check(row)
        except DataError:
            return None
        return None if any(kept[position] is None for position in key) else kept

    def encoded(row: Row) -> Codes | None:
        try:
            codes = tuple([encode(value) for encode, value in zip(encoders, row, strict=True)])
            return codes if compute is None else compute(codes)
        except DataError:
            return None

    def completed(changed: RowBatch) -> list[Codes] | None:
        if compute is None:
            return _rows_of(changed)
        try:
            return [compute(codes) for codes in _rows_of(changed)]
        except DataError:
            return None

    return checked, encoded, completed


def _rows_of(changed: RowBatch) -> list[Codes]:
    columns = [codes.tolist() for codes in changed.codes()]
    return list(zip(*columns, strict=True)) if columns else [()] * len(changed.weights)
