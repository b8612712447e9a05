"""What the runtime needs of a kernel: maps, triggers and readers that come and go while data stays.

`NativeBackend` (native_backend.py) stands on the compiled kernel and `PureBackend` (reference/) on plain Python. Both
take columns of codes: a trigger's *feed* says which expressions of a relation's rows it wants, and in which form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ivme.algebra.exact import ExactSum
from ivme.engine.codes.dictionary import Dictionary
from ivme.engine.ingest.feed import Feed
from ivme.engine.ordered import OrderedColumn, OrderedMap
from ivme.plan.ir import program as ir

Codes = npt.NDArray[np.int64]

Inputs = Mapping[str, tuple[Sequence[Codes], Codes]]
"""The changed rows of relations: the columns of their feeds, and weights."""

_WORD = 2**64 - 1

Block = tuple[list[Codes], Codes, list[Any], list[Codes]]
"""Rows of an answer: output columns, counts, sums by slot, extremes."""

Listed = tuple[list[list[int]], list[int], list[list[Any]], list[list[int]]]
"""A block in Python's lists."""


def listed(block: Block) -> Listed:
    """A block's arrays as lists."""
    columns, counts, slots, extremes = block
    return [c.tolist() for c in columns], counts.tolist(), list(map(whole_sums, slots)), [e.tolist() for e in extremes]


def whole_sums(slot: Any) -> list[Any]:
    """The sums of a slot as Python numbers; several words make one integer, low word first."""
    if isinstance(slot, list):
        return list(slot)
    if slot.ndim == 1:
        return list(slot.tolist())
    return [_whole(words) for words in slot.tolist()]


def _whole(words: list[int]) -> int:
    total = words[-1]
    for word in words[-2::-1]:
        total = total << 64 | word & _WORD
    return total


def exact_sums(slot: Any) -> list[Any]:
    """`whole_sums`, with sums of floats that come as they are as `ExactSum`s."""
    return [ExactSum(*each) if isinstance(each, tuple) else each for each in whole_sums(slot)]


@dataclass(frozen=True, slots=True)
class EmittedDelta:
    """A part of the change of a view's result, over the variables of `schema`; `slots` as in a block.

    `slots` is empty for a delta whose payloads are plain counts.
    """

    view: str
    schema: tuple[str, ...]
    columns: list[Codes]
    counts: Codes
    slots: list[Any]


class Cursor(Protocol):
    """An enumeration under way."""

    @property
    def pinned(self) -> bool:
        """Whether it reads its maps as they were when it was opened, whatever is written meanwhile."""

    def next_block(self, max_rows: int = ...) -> Block:
        """The next rows; none at the end. Raises StaleCursor if its maps changed, or if there was no memory for what
        they were."""


class KeptRows(Protocol):
    """Rows of a view by the codes of their groups, as they were after the last batch; see `_kernel.KeptRows`."""

    def __len__(self) -> int: ...
    def compare(
        self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes], /
    ) -> tuple[list[Codes], Codes]: ...
    def put(self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes], /) -> None: ...
    def memory_bytes(self) -> int: ...
    def columns(self) -> list[Codes]: ...


class Backend(Protocol):
    """A kernel with room for many views. Names are the runtime's own."""

    shares_reading: bool
    """Whether several threads may read at a time."""
    stale_cursor: type[Exception]
    overflow: type[Exception]
    broken_check: type[Exception]

    def limit(self, name: str, limits: Sequence[str]) -> list[tuple[int, ...]]:
        """What the sums of a map must fit for `misfits` to say nothing: "int", "decimal", or "" for anything.

        Returns the keys of the entries that do not fit already."""

    def misfits(self) -> list[tuple[str, tuple[int, ...]]]:
        """The maps and keys of entries that the open transaction left with sums beyond their limits."""

    def install(self, maps: Sequence[ir.Map], slots: Sequence[str], orders: Mapping[str, Any]) -> None:
        """Adds the maps that are not there yet, and indexes to those that are."""

    def set_table(
        self, name: str, source: ir.Source, key: Sequence[int], *, ring: bool, keep_rows: bool = True
    ) -> Feed:
        """Makes a table if it is not there yet, with a primary key on these columns or none; what its rows are fed as.

        The trigger of its name adds rows to it. Unless in ring mode, that refuses weights below zero. If it does
        not keep its rows, the kernel counts them only, and nobody reads them.
        """

    def drop_table(self, name: str) -> None:
        """Forgets a table and its trigger, if they are there."""

    def drop_map(self, name: str) -> None:
        """Forgets a map, if it is there: an installation may have failed before it."""

    def saved(self) -> Callable[[], None]:
        """From here to `collect`, maps, triggers, readers and partitions keep what they had under their names.

        What is returned puts all of them back as they are now; it may be called more than once.
        """

    def collect(self) -> None:
        """Forgets for good what has no name any more."""

    def clear_map(self, name: str) -> None: ...
    def set_trigger(self, name: str, steps: Sequence[ir.Step], slots: Sequence[str]) -> Mapping[str, Feed]:
        """Compiles steps under a name, in place of what was there; the feeds that it wants, by relation.

        The partitions that its steps watch are set before.
        """

    def drop_trigger(self, name: str) -> None: ...
    def set_reader(self, name: str, enumeration: ir.Enumeration, slots: Sequence[str] = ()) -> None:
        """Compiles an enumeration with its guards and branches, in place of what was there; `slots` as for triggers."""

    def drop_reader(self, name: str) -> None: ...
    def set_partition(self, partition: ir.Partition) -> None:
        """Makes a partition of maps that are there, in place of what was there; nothing is noted without bounds."""

    def drop_partition(self, name: str) -> None:
        """Forgets a partition, if it is there: after the triggers that watch it, and before its maps."""

    def set_bounds(self, name: str, lower: int, upper: int) -> None:
        """From here on light keys rise at degrees >= upper and heavy ones fall at degrees < lower. A rollback does not
        take it back."""

    def net(self, columns: Sequence[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
        """Rows with equal codes as one, with the sum of their weights; none where that is zero."""

    def noted(self, name: str) -> tuple[list[Codes], list[Codes]]:
        """Takes the keys noted as rising and as falling, by column, but for those that no longer are."""

    def sweep(self, name: str, position: int, count: int) -> int:
        """Notes the keys on the wrong side among the next entries, from position 0 on; where to go on, -1 at the end.

        Rows that come while a sweep is under way may be passed over: their triggers watch them.
        """

    def census(self, name: str, threshold: int) -> tuple[list[Codes], list[Codes]]:
        """The light keys with a degree >= threshold in some leaf, and the heavy ones that have it in none; O(N)."""

    def run(self, name: str, inputs: Inputs) -> list[EmittedDelta]:
        """Runs a trigger, as part of the open transaction or as one of its own; what it emits. Cursors on maps that it
        adds nothing to stay as they are."""

    def run_many(self, runs: Sequence[tuple[str, Inputs]]) -> list[list[EmittedDelta]]:
        """`run` for several triggers, all or nothing; what each emits."""

    def set_threads(self, threads: int) -> None:
        """On how many threads large batches may run."""

    @property
    def threads(self) -> int:
        """How many these are."""

    @property
    def failed_run(self) -> int:
        """Which of the triggers was refused, where `run_many` was."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def roll_back(self) -> None: ...
    def open(self, reader: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:
        """Begins to read a request; with `whole` all of it will be read, and may come at once if that is quicker."""

    def request(self, reader: str, inputs: Sequence[int], limit: int, *, waits: bool = True) -> Listed | None:
        """The answer to one access request as lists; None if it may have more rows than the limit."""

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]: ...
    def kept_rows(self, keys: int, values: int) -> KeptRows:
        """Room for rows with so many columns of keys and of values."""

    def ordered_map(self, order: Sequence[OrderedColumn], groups: int, summed: Sequence[int] = ()) -> OrderedMap:
        """A map of rows in this order of all of their columns, of which the first are those of a group.

        Of `summed` columns, by their positions, the sums of values are known; their codes are their values."""

    def get(self, name: str, codes: Sequence[int]) -> int:
        """The count of an entry of a map, or the weight of a row of a table; 0 if it is not there."""

    def scan(self, name: str, *, distinct: bool = True, only_decodes: bool = False) -> tuple[list[Codes], Codes]:
        """All entries of a map with their counts, or all rows of a table with their weights.

        Without `distinct`, rows of a table may come in several places. A caller that only decodes them may get several
        codes for equal strings."""

    def weights(self, name: str) -> Codes:
        """The weights of a table's rows; equal ones may come in several places."""

    def column(self, name: str, position: int) -> Codes:
        """A column of a table's rows, in the order of their `weights`."""

    def rows_of_keys(self, name: str, key: Sequence[int], keys: Sequence[Codes]) -> list[Codes]:
        """The rows of a table that have one of some distinct primary keys; `key` are the places of its columns."""

    def size(self, name: str) -> int:
        """The entries of a map, or the rows of a table, where equal ones may count more than once."""

    def changes(self, name: str) -> int:
        """How many rows of a table have been added or taken away so far, also by batches that were taken back."""

    def is_sweep_due(self, dictionaries: Sequence[Dictionary], least: int) -> bool:
        """Whether so many codes may be held no more that looking for them costs little for each; few never are."""

    def sweep_codes(self, dictionaries: Sequence[Dictionary], held: Sequence[Codes]) -> None:
        """Takes back the codes that neither a map nor `held` has; between transactions."""

    def entries(self) -> int:
        """The sizes of all maps together."""

    def memory_bytes(self) -> int: ...
    def release_buffers(self) -> None:
        """Gives back what batches left for the next ones; between two transactions."""

    def limit_memory(self, room: int | None, limit: int) -> None:
        """Until this thread lets go of the lock, its allocations may take so much more, which is what a limit leaves:
        the next is refused with `MemoryLimitError`. With None they may take what they want."""

    @property
    def operations(self) -> int: ...
    @property
    def scans(self) -> int:
        """How often a step read a whole map, or a census all keys: triggers never do."""
