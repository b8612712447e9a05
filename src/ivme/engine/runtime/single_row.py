"""The single-row path, for one row or a few: no Arrow, no batch; a row of a table is one call of the kernel.

The kernel takes the row from a tuple, a list, a dict or a dataclass to codes, computes the expressions over them,
runs all triggers, and appends the record of the row to the log. Rows of followed views come back as codes in
between, and so do rows that make a key change sides, or N leave its limits, where a view has heavy and light parts.

Whatever is out of the ordinary (a value that does not fit, a delete of what is not there, a view that is recomputed or
kept elsewhere) is left to the batch path, which also knows what to say about it; then nothing has been changed yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ivme.engine.backend import EmittedDelta
from ivme.engine.expression.computed import ComputedColumns
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.ingest.row_check import RowCheck, row_check
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.journal import Journal
from ivme.engine.runtime.native_path import let_take_arrow, native_path, set_parts
from ivme.engine.runtime.transaction import Part, Transaction, Undo
from ivme.errors import DataError

if TYPE_CHECKING:
    from ivme._kernel import RowPath as NativeRowPath
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
    """A row as it is stored; None if the batch path has to take it."""

    encode: Callable[[Any], Codes | None]
    """The codes of a row and of the expressions over it; None if the batch path has to take it."""

    completed: Callable[[RowBatch], list[Codes] | None]
    """The codes of rows that come as codes, with those of the expressions over them; None as before."""

    run: Callable[[Codes, int, Emitted], None]
    """Changes the multiplicity of a row in an open transaction, and notes what followed views emit."""

    apply: Callable[[Any, int], bool]
    """Changes the multiplicity of a row of no followed view, as a transaction; False if the batch path has to."""

    log: RowLog | None

    followed: bool
    """Whether a view that reads the relation is followed."""

    coded: bool
    """Whether a row may have values that are not their own codes."""

    native: NativeRowPath | None
    """What takes a row in one call of the kernel, if nothing else has to know of it."""

    prepare_arrow: Callable[[], None] | None = None
    """Lets the kernel take record batches as well."""


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
        self.end = journal.end
        self._table = table
        self._decoders = [domain.decode_value for domain in layout.domains]
        self.mark, self.roll_back = journal.mark, journal.roll_back

    def append(self, codes: Codes, weight: int) -> None:
        row = tuple([decode(code) for decode, code in zip(self._decoders, codes, strict=False)])
        self._journal.row(self._table, row, weight)


def new_path(catalog: Catalog, name: str) -> SingleRowPath | None:
    """The single-row path of a table or view; None if its rows have to take the batch path."""
    backend, journal = catalog.backend, catalog.journal
    if not isinstance(backend, NativeBackend) or catalog.is_read_by_builds(name) or catalog.relation(name).static:
        return None
    readers = catalog.readers(name)
    views = [catalog.views[view] for view in readers if view in catalog.views]
    if any(view in catalog.participants for view in readers) or any(view.lazy for view in views):
        return None
    is_logged = journal is not None and name not in catalog.views
    log = RowLog(journal, name, catalog.layout(name)) if is_logged and journal is not None else None
    return single_row(backend, catalog, name, views, log)


def single_row(
    backend: NativeBackend, catalog: Catalog, name: str, views: Sequence[ViewState], log: RowLog | None
) -> SingleRowPath:
    """The single-row path for rows of a table or view that these views read.

    The groups `rebalanced` have partitions, and move keys if the row made them change sides. The `checks` must have no
    row in the end; if one has, the batch path raises the error.
    """
    lock, table, layout = catalog.lock, catalog.relation(name), catalog.layout(name)
    rebalanced = catalog.rebalanced(name)
    checks = [check for view in views for check in view.checks]
    followed = any(view.followers for view in views)
    way = native_path(backend, catalog, name)
    native, compute, width = way.path, way.compute, way.width
    runs = [(number, _picker(pick, width)) for number, pick in zip(way.numbers, way.picks, strict=True)]
    is_balanced = set_parts(backend, catalog, name, way)
    refused = (backend.broken_check, backend.overflow, _FailureError)
    run_one = backend.run_one
    emits = [backend.emits(trigger) for trigger in way.triggers]

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
            native.run(codes, weight)
            for group in rebalanced:
                group.settle(1)
            for check in checks:
                if check.has_row():
                    raise _FailureError
            if log is not None:
                log.append(codes, weight)

    def apply(row: Any, weight: int) -> bool:
        codes = native.encode(row)
        if codes is None:
            return False
        try:
            change(codes, weight)
        except refused:
            return False
        return True

    is_plain = is_balanced and not (checks or followed)
    if log is not None:
        is_plain = is_plain and log.end is not None and native.set_log(log.end, name, json.dumps(name))
    coded = followed or not all(domain.orders_by_code for domain in layout.domains) or width > len(table.columns)
    return SingleRowPath(
        partial(_checked, row_check(table.without_defaults()), table.key_positions),
        native.encode,
        partial(_completed, compute),
        run,
        native.apply if is_plain and not rebalanced and log is None else apply,
        log,
        followed,
        coded,
        native if is_plain else None,
        partial(let_take_arrow, backend, catalog, name, way),
    )


def open_gate(catalog: Catalog, relation: str, path: SingleRowPath) -> None:
    """Lets the kernel take rows and record batches of a table without Python, if it may."""
    gate, state = catalog.row_gate, catalog.tables.get(relation)
    if gate is not None and state is not None and path.native is not None and catalog.memory_limit is None:
        if path.prepare_arrow is not None and catalog.is_quiet(relation):
            path.prepare_arrow()
        gate.set_path(relation, path.native, not state.table.append_only, True)


def _picker(places: list[int], width: int) -> Callable[[Codes], Codes] | None:
    """Takes the codes that a trigger wants; None if it wants all."""
    if places == list(range(width)):
        return None
    if len(places) > 1:
        return itemgetter(*places)
    return lambda codes: tuple([codes[place] for place in places])


def _checked(check: RowCheck, key: Sequence[int], row: Any) -> Row | None:
    """A row as it is stored; None if the batch path has to take it."""
    try:
        kept = check(row)
    except DataError:
        return None
    return None if any(kept[position] is None for position in key) else kept


def _completed(compute: ComputedColumns | None, changed: RowBatch) -> list[Codes] | None:
    """The codes of rows that come as codes, with those of the expressions over them."""
    if compute is None:
        return _rows_of(changed)
    try:
        return [compute.row(codes) for codes in _rows_of(changed)]
    except DataError:
        return None


def _rows_of(changed: RowBatch) -> list[Codes]:
    columns = [codes.tolist() for codes in changed.codes()]
    return list(zip(*columns, strict=True)) if columns else [()] * len(changed.weights)
