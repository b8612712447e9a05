"""Changes of a table that depend on what is in it: upsert, update and delete by a condition, replace, truncate.

Each is turned into rows that go and rows that come when its batch is committed, under the lock: what is then applied,
logged and told to followers is a plain change like any other. A change in a batch sees what the batch did before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ivme.engine.backend import Codes
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import NAN_CODE
from ivme.engine.codes.value_check import NAN_REASON
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.stored_rows import StoredRows
from ivme.engine.runtime.view_state import TableState
from ivme.errors import DataError, shown
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.model import Table

_UNCHANGED = "none can be changed or deleted: only insert into it, or create it without keep_rows=False"


def ignore(_: int) -> None:
    """Takes no note of how many rows a change has."""


class TableChange(ABC):
    """A change of one table, still to be turned into rows."""

    def given(self) -> RowBatch | None:
        """The rows that come with it."""
        return None

    @abstractmethod
    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        """The rows that go and come; `before` is what the batch has done to the table so far."""


@dataclass(frozen=True, slots=True)
class Replace(TableChange):
    """A whole new content: what is not in it goes."""

    rows: RowBatch

    def given(self) -> RowBatch | None:
        return self.rows

    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        return _joined(catalog, state, _negated(_contents(catalog, state, before)), self.rows)


@dataclass(frozen=True, slots=True)
class DeleteWhere(TableChange):
    """All rows for which a condition holds go, or without one all rows."""

    where: Expression | None
    tell: Callable[[int], object] = ignore
    """Told how many rows there are, when it is known."""

    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        old = _chosen(catalog, state, before, self.where)
        self.tell(int(old.weights.sum()))
        return _negated(old)


@dataclass(frozen=True, slots=True)
class Update(TableChange):
    """Rows for which a condition holds get other values in some columns, computed from their own."""

    where: Expression | None
    values: Mapping[int, Expression]
    tell: Callable[[int], object] = ignore
    """Told how many rows there are, when it is known."""

    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        old = _chosen(catalog, state, before, self.where)
        self.tell(int(old.weights.sum()))
        wanted = [FeedColumn(expression, "code", None) for expression in self.values.values()]
        computed = computed_columns(state.table, wanted, catalog.domains).of(old)
        columns = old.codes()
        for position, codes in zip(self.values, computed, strict=True):
            _check_values(state, position, codes)
            columns[position] = codes
        new = RowBatch(catalog.layout(state.table.name), old.weights, None, list(columns))
        return _joined(catalog, state, _negated(old), new)


@dataclass(frozen=True, slots=True)
class Upsert(TableChange):
    """Rows come; each takes the place of the one with its primary key. Of rows with one key, the last counts."""

    rows: RowBatch

    def given(self) -> RowBatch | None:
        return self.rows

    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        keys = state.table.key_positions
        last = _last_places([self.rows.code(position) for position in keys])
        new = self.rows.kept(last, np.ones(len(last), np.int64))
        old = _of_keys(catalog, state, before, [new.code(position) for position in keys])
        return _joined(catalog, state, _negated(old), new)


@dataclass(frozen=True, slots=True)
class DeleteKeys(TableChange):
    """The rows with some primary keys go; `rows` has the keys, and NULL in the other columns."""

    rows: RowBatch
    strict: bool

    def given(self) -> RowBatch | None:
        return self.rows

    def resolved(self, catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
        places = state.table.key_positions
        distinct = _last_places([self.rows.code(place) for place in places])
        keys = [self.rows.code(place)[distinct] for place in places]
        old = _of_keys(catalog, state, before, keys)
        if self.strict and len(old.weights) < len(distinct):
            self._refuse_missing(state, keys, [old.code(place) for place in places])
        return _negated(old)

    def _refuse_missing(self, state: TableState, keys: Sequence[Codes], found: Sequence[Codes]) -> None:
        there = set(zip(*(codes.tolist() for codes in found), strict=True))
        missing = next(key for key in zip(*(codes.tolist() for codes in keys), strict=True) if key not in there)
        domains = [state.domains[place] for place in state.table.key_positions]
        key = tuple(domain.decode_value(code) for domain, code in zip(domains, missing, strict=True))
        raise DataError(
            f"table {state.table.name} has no row with the key {shown(key)}; nothing was changed (strict=False ignores "
            "keys that are not there)"
        )


def _check_values(state: TableState, position: int, codes: Codes) -> None:
    table, column = state.table, state.table.columns[position].name
    if position in table.key_positions and (codes == NULL_CODE).any():
        raise DataError(f"table {table.name}, column {column}: a primary key cannot be NULL; nothing was changed")
    if state.domains[position].type.kind == "float" and (codes == NAN_CODE).any():
        raise DataError(f"table {table.name}, column {column}: {NAN_REASON}; nothing was changed")


def _negated(rows: RowBatch) -> RowBatch:
    return rows.kept(np.arange(len(rows.weights)), -rows.weights)


def _joined(catalog: Catalog, state: TableState, gone: RowBatch, come: RowBatch) -> RowBatch:
    """Both together, each row once: one that goes and comes back is not a change."""
    columns = [np.concatenate(pair) for pair in zip(gone.codes(), come.codes(), strict=True)]
    return _net(catalog, state, columns, np.concatenate([gone.weights, come.weights]))


def _net(catalog: Catalog, state: TableState, columns: Sequence[Codes], weights: Codes) -> RowBatch:
    netted, left = catalog.backend.net(columns, weights)
    return RowBatch(catalog.layout(state.table.name), left, None, list(netted))


def _contents(catalog: Catalog, state: TableState, before: RowBatch | None) -> RowBatch:
    """The rows of a table as the batch has left them so far; equal ones may come more than once."""
    catalog.check_kept(state.table.name, _UNCHANGED)
    stored = StoredRows(catalog.layout(state.table.name), catalog.backend, state.rows)
    return stored if before is None else _joined(catalog, state, stored, before)


def _of_keys(catalog: Catalog, state: TableState, before: RowBatch | None, keys: Sequence[Codes]) -> RowBatch:
    """The rows that have one of some distinct primary keys."""
    found = catalog.backend.rows_of_keys(state.rows, state.table.key_positions, keys)
    rows = RowBatch(catalog.layout(state.table.name), np.ones(len(found[0]), np.int64), None, list(found))
    if before is None:
        return rows
    wanted = set(zip(*(key.tolist() for key in keys), strict=True))
    own = zip(*(before.code(position).tolist() for position in state.table.key_positions), strict=True)
    mine = [number for number, key in enumerate(own) if key in wanted]
    return _joined(catalog, state, rows, before.kept(mine, before.weights[mine]))


def rows_with_keys(catalog: Catalog, state: TableState, rows: RowBatch) -> RowBatch:
    """The rows of a table that have the primary keys of some others; under the lock, O(1) for each."""
    keys = [rows.code(position) for position in state.table.key_positions]
    last = _last_places(keys)
    return _of_keys(catalog, state, None, [codes[last] for codes in keys])


def _chosen(catalog: Catalog, state: TableState, before: RowBatch | None, where: Expression | None) -> RowBatch:
    """The rows for which a condition holds: all of the table's are looked at, unless it names a primary key."""
    key = _named_key(state, where)
    if key is None:
        rows = _contents(catalog, state, before)
    else:
        rows = _of_keys(catalog, state, before, [np.array([code], np.int64) for code in key])
    if where is None:
        return rows
    (holds,) = computed_columns(state.table, [FeedColumn(where, "test", None)], catalog.domains).of(rows)
    chosen = np.flatnonzero(holds == 1)
    return rows.kept(chosen, rows.weights[chosen])


_EXACT = {"int": int, "string": str, "binary": bytes, "bool": bool}
"""The kinds whose columns equal constants of one Python type only by their codes."""


def _named_key(state: TableState, where: Expression | None) -> list[int] | None:
    """The codes of the primary key that a row must have for a condition to hold; None if it names none."""
    table = state.table
    fixed = {} if where is None else dict(_fixed(where, table))
    if not table.key_positions or not fixed.keys() >= set(table.key_positions):
        return None
    codes = [state.domains[position].find_value(fixed[position]) for position in table.key_positions]
    return [NULL_CODE if code is None else code for code in codes]  # no key is NULL


def _fixed(where: Expression, table: Table) -> list[tuple[int, object]]:
    """The columns that a condition says equal constants, by their places."""
    if not isinstance(where, Call):
        return []
    if where.function == "and":
        return [pair for argument in where.arguments for pair in _fixed(argument, table)]
    if where.function != "eq":
        return []
    for left, right in (where.arguments, where.arguments[::-1]):
        if isinstance(left, ColumnRef) and isinstance(right, Literal):
            position = table.column_names.index(left.name)
            type_ = table.columns[position].type
            if type_ is not None and type(right.value) is _EXACT.get(type_.kind):
                return [(position, right.value)]
    return []


def _last_places(keys: Sequence[Codes]) -> Codes:
    """Where each distinct key stands last, in the order of the rows."""
    backwards = np.stack([codes[::-1] for codes in keys], axis=1)
    if backwards.shape[1] == 1:
        _, first = np.unique(backwards[:, 0], return_index=True)
    else:
        _, first = np.unique(backwards, axis=0, return_index=True)
    return np.sort(len(backwards) - 1 - first)
