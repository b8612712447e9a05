"""Faults to plant in the engine, each of which the fuzzer must find: they show that it looks where it should.

A fault replaces one function of ivme by a wrong one. Those of the kernel are planted in its plain-Python twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from ivme import compile as compiler
from ivme.closure.pure import PureClosure
from ivme.engine.codes.dictionary import Dictionary
from ivme.engine.expression.by_code import CodeMemo
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.comparisons import Comparisons
from ivme.engine.read.asked import Asked
from ivme.engine.reference import backend as pure_backend
from ivme.engine.reference import columns
from ivme.engine.reference.indexed_map import IndexedMap, _Extremes
from ivme.engine.reference.interpreter import PureKernel
from ivme.engine.runtime import batch, runtime
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.decoding import RowDecoder
from ivme.engine.runtime.following import Followed, FollowedGroups
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.rebalance import Rebalancer
from ivme.query import aggregates, functions
from ivme.store.contents import Contents, StoredTable
from ivme.view import View
from tests.fuzz.cases import Case, make_case
from tests.fuzz.running import run_case

MOST_CASES = 400
"""A fault that so many cases do not find is not found."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: what is wrong, how to plant it, and the engines that have it."""

    name: str
    plant: Callable[[], AbstractContextManager[Any]]
    engines: tuple[str, ...] = ("pure",)


def cases_until_found(fault: Fault, first: int = 0, most: int = MOST_CASES) -> int | None:
    """How many cases it takes to find a planted fault; None if `most` do not."""
    with fault.plant():
        for number in range(most):
            if run_case(_on(make_case(first + number), fault.engines)) is not None:
                return number + 1
    return None


def _on(case: Case, engines: tuple[str, ...]) -> Case:
    return replace(case, engines=engines)


def _wrapped(owner: Any, name: str, wrong: Callable[..., Any]) -> Callable[[], AbstractContextManager[Any]]:
    """Plants `wrong(right, *arguments)` for a function."""

    def plant() -> AbstractContextManager[Any]:
        right = getattr(owner, name)
        return patch.object(owner, name, lambda *args, **kwargs: wrong(right, *args, **kwargs))

    return plant


def _without_part(place: int) -> Callable[..., Any]:
    def load(right: Any, step: Any, columns: Any, weights: Any) -> Any:
        return right((*step[:place], (), *step[place + 1 :]), columns, weights)

    return load


def _row_dropped(right: Any, step: Any, columns: Any, weights: Any) -> Any:
    kept = len(weights) - (len(weights) > 3)
    return right(step, [column[:kept] for column in columns], weights[:kept])


def _sign_lost(right: Any, step: Any, columns: Any, weights: Any) -> Any:
    return right(step, columns, np.abs(weights) if len(weights) > 2 else weights)


def _null_counted(right: Any, kind: str, column: int, lists: Any, i: int) -> Any:
    return 1 if kind == "count" else right(kind, column, lists, i)


def _null_distinct(right: Any, self: Any, index: Any, key: Any, function: str) -> Any:
    if function == "count_distinct":
        return len(self._indexes[index].get(key, {}))
    return right(self, index, key, function)


def _not_rolled_back(_: Any, self: Any) -> None:
    self.commit()


def _zero_stays(right: Any, self: Any, delta: Any, journal: Any = None, check: str = "") -> None:
    right(self, delta, journal, check)
    for key, payload in delta.items():
        if self.get(key) is None and isinstance(payload, tuple) and not check:
            self.put(key, payload)


def _extreme_stays(right: Any, self: Any, value: Any) -> Any:
    left = right(self, value)
    if left > 1:
        self._alive.add(value)
    return left


def _index_not_kept(right: Any, self: Any, row: Any, change: int, indexes: Any) -> None:
    chosen = list(indexes)
    seen = [index for index in chosen[1:] if _is_indexed(self, index, row)]
    right(self, row, change, chosen[:1] if change > 0 or len(chosen) < 2 else chosen[:1] + seen)


def _is_indexed(stored: Any, index: Any, row: Any) -> bool:
    group = stored._indexes[index].get(tuple(row[i] for i in index.key), {})
    return tuple(row[i] for i in index.values) in group


def _moved_without_views(right: Any, self: Any, partition: Any, keys: Any, *, rising: bool, views: bool) -> None:
    right(self, partition, keys, rising=rising, views=views and not rising)


def _cut_too_short(right: Any, self: Any, columns: Any, rows: int) -> Iterator[slice]:
    for piece in right(self, columns, rows):
        yield piece if piece.stop in (piece.start + 1, rows) else slice(piece.start, piece.stop - 1)


def _code_mixed_up(right: Any, self: Any, value: Any) -> int:
    code: int = right(self, value)
    return code - 1 if code - self.base == 4 else code


def _twice(right: Any, self: Any, *args: Any) -> None:
    right(self, *args)
    self._once = False


def _parameter_ignored(right: Any, self: Any, parameters: Any) -> Any:
    codes, values = right(self, parameters)
    return (codes[:1] * len(codes) if codes else codes), values


def _average_of_rows(right: Any, total: Any, count: int, *rest: Any) -> Any:
    return right(total, count + (count > 2), *rest)


def _zero_of_nothing(right: Any, self: Any) -> Any:
    return tuple(0 for _ in right(self))


def _stale_view(right: Any, self: Any, view: str, changed: Any, *rest: Any) -> None:
    right(self, view, changed.kept(range(min(3, len(changed.weights))), changed.weights[:3]), *rest)


def _old_row_stays(right: Any, self: Any, columns: Any, weights: Any) -> Any:
    came = np.flatnonzero(weights > 0)
    return right(self, [column[came] for column in columns], weights[came])


def _deletes_unseen(right: Any, self: Any, emitted: Any) -> Any:
    changed, keep = right(self, emitted)
    if changed is None or len(changed.weights) == 1:
        return changed, keep
    came = np.flatnonzero(changed.weights > 0)
    return changed.kept(came, changed.weights[came]), keep


def _first_part_only(right: Any, parts: Any) -> Any:
    return right(parts[:2])


def _clipped_short(right: Any, self: Any, name: str, changed: Any) -> Any:
    found = right(self, name, changed)
    kept = np.arange(max(len(found.weights) - 1, 1))
    return found.kept(kept, found.weights[kept]) if len(found.weights) else found


def _record_skipped(right: Any, self: Any, content: Any, body: Any, path: Any) -> None:
    if len(content["batch"]) < 2:
        right(self, content, body, path)


def _multiplicity_lost(right: Any, self: Any) -> Any:
    rows, weights = right(self)
    return rows, np.minimum(weights, 1)


def _rows_once(right: Any, self: Any, parameters: Any, most: Any = None) -> Any:
    return [(rows, np.minimum(counts, 1)) for rows, counts in right(self, parameters, most)]


def _count_distinct_rows(_: Any, self: Any, **parameters: Any) -> int:
    return sum(1 for _ in self.items(**parameters))


def _never_absent(right: Any, self: Any, row: Any, **parameters: Any) -> int:
    found: int = right(self, row, **parameters)
    return max(found, 1)


def _second_block_lost(right: Any, self: Any, state: Any, codes: Any, **options: Any) -> Iterator[Any]:
    for number, block in enumerate(right(self, state, codes, **options)):
        if number != 1:
            yield block


def _edge_kept(right: Any, self: Any, gone: Any) -> None:
    right(self, gone[1:] if len(gone) > 1 else gone)


def _excluding(left: Any, right: Any) -> bool:
    return bool(left < right)


def _compared_wrongly(right: Any, self: Any, function: str, *arguments: Any) -> Any:
    return right(self, "lt" if function == "le" else function, *arguments)


def _first_for_all(_right: Any, self: Any) -> None:
    codes = self.table.requested()
    if len(codes):
        values, states = self._elsewhere.codes([codes])
        self.table.fill(codes, np.full_like(values, values[0]), np.full_like(states, states[0]))
        self.table.withdraw()


def _nulls(_right: Any, _self: Any, outputs: Any, doubtful: Any, *_: Any) -> None:
    outputs[:, doubtful] = -(2**63)


def _function(name: str, wrong: Callable[..., Any]) -> Callable[[], AbstractContextManager[Any]]:
    changed = replace(functions.FUNCTIONS[name], apply=wrong)
    return lambda: patch.dict(functions.FUNCTIONS, {name: changed})


_NATIVE = ("native",)
_ON_DISK = ("native on disk",)


def _unguarded(_: Any, query: Any) -> Any:
    return query


FAULTS = (
    Fault("a row of a larger batch is dropped", _wrapped(pure_backend, "load_columns", _row_dropped)),
    Fault("a batch of several rows loses its signs", _wrapped(pure_backend, "load_columns", _sign_lost)),
    Fault("a filter by a constant is not applied", _wrapped(pure_backend, "load_columns", _without_part(4))),
    Fault("two equal columns of one table are not compared", _wrapped(pure_backend, "load_columns", _without_part(5))),
    Fault("NULL joins NULL", _wrapped(pure_backend, "load_columns", _without_part(6))),
    Fault("COUNT of a column counts NULL", _wrapped(columns, "_lifted", _null_counted)),
    Fault("COUNT DISTINCT counts NULL", _wrapped(IndexedMap, "extreme", _null_distinct)),
    Fault("a refused batch is not rolled back", _wrapped(PureKernel, "roll_back", _not_rolled_back)),
    Fault("a group stays when its count is zero", _wrapped(IndexedMap, "add_all", _zero_stays)),
    Fault("MIN and MAX are not restored after a delete", _wrapped(_Extremes, "drop", _extreme_stays)),
    Fault("a second index is not told of inserts", _wrapped(IndexedMap, "_reindex", _index_not_kept)),
    Fault("a key becomes heavy without its views", _wrapped(Rebalancer, "_move", _moved_without_views)),
    Fault("a batch is cut one row too short", _wrapped(Rebalancer, "pieces", _cut_too_short)),
    Fault("two values share a code of the dictionary", _wrapped(Dictionary, "add", _code_mixed_up)),
    Fault("an edge stays in a closure after its delete", _wrapped(PureClosure, "_remove", _edge_kept)),
    Fault("rows of a DISTINCT are counted twice", _wrapped(RowDecoder, "__init__", _twice), _NATIVE),
    Fault("the second parameter is ignored", _wrapped(Asked, "codes", _parameter_ignored), _NATIVE),
    Fault("AVG divides by a wrong count", _wrapped(aggregates, "average", _average_of_rows), _NATIVE),
    Fault("an aggregate over nothing is 0", _wrapped(RowDecoder, "nothing", _zero_of_nothing), _NATIVE),
    Fault("a view on a view is stale after a larger change", _wrapped(runtime.Runtime, "_feed", _stale_view), _NATIVE),
    Fault("the old row of a group stays in a view on it", _wrapped(FollowedGroups, "_shown", _old_row_stays), _NATIVE),
    Fault("followers do not see all deletes", _wrapped(Followed, "change", _deletes_unseen), _NATIVE),
    Fault("the third change of a table in a batch is lost", _wrapped(batch, "joined", _first_part_only), _NATIVE),
    Fault("a lenient delete skips a row", _wrapped(batch, "clipped", _clipped_short), _NATIVE),
    Fault("a log record of several tables is skipped", _wrapped(Contents, "_add_batch", _record_skipped), _ON_DISK),
    Fault("a snapshot loses multiplicities", _wrapped(StoredTable, "take_snapshot", _multiplicity_lost), _ON_DISK),
    Fault("Arrow readers see each row once", _wrapped(View, "group_batches", _rows_once), _NATIVE),
    Fault("count() counts distinct rows", _wrapped(View, "count", _count_distinct_rows), _NATIVE),
    Fault("an absent row has a multiplicity", _wrapped(View, "multiplicity", _never_absent), _NATIVE),
    Fault("the second block of rows is lost", _wrapped(Reader, "blocks", _second_block_lost), _NATIVE),
    Fault("<= excludes equality", _function("le", _excluding)),
    Fault("<= excludes equality in the kernel", _wrapped(Comparisons, "compared", _compared_wrongly), _NATIVE),
    Fault("a function of text is remembered for one value only", _wrapped(CodeMemo, "fill", _first_for_all), _NATIVE),
    Fault("a row that the kernel leaves to `evaluate` is NULL", _wrapped(KernelColumns, "_settle", _nulls), _NATIVE),
    Fault("the primary key may be NULL", _wrapped(batch, "_check_key", lambda *_: None), _NATIVE),
    Fault("a guard of another table is none", _wrapped(compiler, "without_failures", _unguarded), _NATIVE),
    Fault("a static table changes", _wrapped(Batch, "_check_static", lambda *_: None), _NATIVE),
)
