"""Where the rows of a view's tables go: the grids of `hypercube` applied to columns of values.

Heavy values are known by their hashes, so that a routing is a few numbers and names, and the same everywhere. The
joins of each pattern run apart from those of the others, in an engine of their own: a row of an atom without the heavy
variable belongs to several patterns, and would else meet there what it met elsewhere already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.expression.arrow_values import evaluate_table
from ivme.query.expression import ColumnRef, Expression
from ivme.query.failures import failure_of
from ivme.query.model import Atom, Table
from ivme.shards.hashing import Hashes, coordinates, hash_column, hash_rows
from ivme.shards.hypercube import Pattern

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Routing:
    """The patterns of a view over its shards; `heavy` has the hashes of each variable's heavy values."""

    shards: int
    heavy: tuple[tuple[str, tuple[int, ...]], ...]
    patterns: tuple[Pattern, ...]

    @property
    def variables(self) -> frozenset[str]:
        """The variables on which the place of a row depends."""
        shared = {variable for pattern in self.patterns for variable, _ in pattern.shares}
        return frozenset(shared | {variable for pattern in self.patterns for variable in pattern.heavy})

    def to_json(self) -> dict[str, Any]:
        patterns = [[sorted(p.heavy), [list(share) for share in p.shares], p.first] for p in self.patterns]
        heavy = [[variable, list(hashes)] for variable, hashes in self.heavy]
        return {"shards": self.shards, "heavy": heavy, "patterns": patterns}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Routing:
        patterns = (
            Pattern(frozenset(heavy), tuple((v, n) for v, n in shares), first)
            for heavy, shares, first in found["patterns"]
        )
        heavy = tuple((variable, tuple(hashes)) for variable, hashes in found["heavy"])
        return Routing(found["shards"], heavy, tuple(patterns))


def places(routing: Routing, hashes: Mapping[str, Hashes], rows: int) -> Iterator[tuple[int, int, Numbers]]:
    """For each pattern and shard the numbers of the rows that belong there.

    `hashes` are those of an atom's variables, as far as the routing asks. A row that goes to a shard in two patterns
    comes once for each; within a pattern it comes to a shard at most once.
    """
    heavy = {v: np.isin(hashes[v], np.array(h, np.uint64)) for v, h in routing.heavy if v in hashes}
    for number, pattern in enumerate(routing.patterns):
        kept = np.ones(rows, bool)
        for variable, is_heavy in heavy.items():
            kept &= is_heavy if variable in pattern.heavy else ~is_heavy
        chosen = np.flatnonzero(kept)
        base, offsets = _cells(pattern, {v: h[chosen] for v, h in hashes.items()}, len(chosen))
        for shard, rows_of_base in _split(base, pattern.cells):
            for offset in offsets:
                yield number, (pattern.first + shard + offset) % routing.shards, chosen[rows_of_base]


def _cells(pattern: Pattern, hashes: Mapping[str, Hashes], rows: int) -> tuple[Numbers, list[int]]:
    """A cell for each row, and the steps from there to the others that agree with it."""
    base = np.zeros(rows, np.int64)
    offsets = [0]
    stride = 1
    for variable, share in pattern.shares:
        if variable in hashes:
            base += stride * coordinates(hashes[variable], variable, share)
        else:
            offsets = [offset + stride * step for offset in offsets for step in range(share)]
        stride *= share
    return base, offsets


def _split(numbers: Numbers, most: int) -> Iterator[tuple[int, Numbers]]:
    """The positions of each number that occurs."""
    if most == 1:
        if len(numbers):
            yield 0, np.arange(len(numbers))
        return
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(most + 1))
    for number in range(most):
        if bounds[number] < bounds[number + 1]:
            yield number, order[bounds[number] : bounds[number + 1]]


def kept_rows(atom: Atom, data: pa.Table) -> tuple[Numbers | None, pa.Table]:
    """The rows that an atom's predicate keeps, and their numbers; None stands for all of them.

    Nothing may be computed from the others: the predicate may be what guards it.
    """
    if atom.where is None:
        return None, data
    mask = evaluate_table(atom.where, data)
    if pa.types.is_null(mask.type):
        return np.zeros(0, np.int64), data.slice(0, 0)
    kept = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
    return kept, data.take(pa.array(kept))


def variable_hashes(
    atom: Atom, table: Table, data: pa.Table, wanted: frozenset[str]
) -> Iterator[tuple[Numbers | None, dict[str, Hashes]]]:
    """The hashes of an atom's variables, of those that are wanted, for rows of its table. Its columns are typed.

    Rows come by the variables whose values fail for them, with their numbers (None stands for all rows). These have no
    hash: such a row goes wherever its other variables allow, as it joins with everything.
    """
    columns: dict[str, Expression] = {}
    for term, column in zip(atom.terms, atom.columns, strict=True):
        if isinstance(term, str) and term in wanted:
            columns.setdefault(term, column)
    tests = {variable: failure_of(column, table) for variable, column in columns.items()}
    failing = {variable: _holds(test, data) for variable, test in tests.items() if test is not None}
    if not any(mask.any() for mask in failing.values()):
        yield None, {variable: _hashed(column, data) for variable, column in columns.items()}
        return
    kinds, which = np.unique(np.stack(list(failing.values())), axis=1, return_inverse=True)
    for number, fails in enumerate(kinds.T):
        lost = {variable for variable, is_lost in zip(failing, fails, strict=True) if is_lost}
        chosen = np.flatnonzero(which.reshape(-1) == number)
        rows = data.take(pa.array(chosen))
        yield chosen, {variable: _hashed(column, rows) for variable, column in columns.items() if variable not in lost}


def _holds(test: Expression, data: pa.Table) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = evaluate_table(test, data).to_numpy(zero_copy_only=False).astype(bool)
    return found


def _hashed(column: Expression, data: pa.Table) -> Hashes:
    if isinstance(column, ColumnRef) and column.name in data.column_names:
        return hash_column(data.column(column.name))
    return hash_column(evaluate_table(column, data))


def asked_places(routing: Routing, inputs: Mapping[str, Hashes]) -> set[tuple[int, int]]:
    """The patterns and shards that can have rows for one access request with these hashes of its inputs."""
    single = {variable: hashes for variable, hashes in inputs.items() if variable in routing.variables}
    return {(pattern, shard) for pattern, shard, _ in places(routing, single, 1)}


def split_rows(shards: int, columns: Sequence[pa.ChunkedArray], rows: int) -> Iterator[tuple[int, Numbers]]:
    """Rows by the hash of some columns: how tables are stored, apart from all views."""
    return _split((hash_rows(columns, rows) % np.uint64(shards)).astype(np.int64), shards)
