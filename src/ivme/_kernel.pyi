"""The compiled kernel: indexed maps from tuples of codes to payloads, and the programs that keep them.

It knows nothing about queries or values. A code is a 64-bit integer; `NULL` stands for NULL. Slots are the types of
the sums beside a payload's count: "i64" of counts, "f64", "i128" of integers, "i192" of their squares, and "d128" or
"d192" of decimals; "joint i64", "joint i192" and "joint d192" of products of values of several tables, which multiply
where others add up in a join. Integer sums wrap: they are what they stand for as long as a group's count fits 63 bits.
Whatever fails is rolled back.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

NULL: int

Codes: TypeAlias = npt.NDArray[np.int64]
Input: TypeAlias = tuple[Sequence[Codes], Codes]
"""The changed rows of one relation: its columns and their weights."""
Slots: TypeAlias = list[npt.NDArray[Any]]
"""One array for each slot: int64, float64, or for wide sums two or three int64 a row, low word first.

Sums of floats that are asked for as they are come as a list of the arguments of `ivme.algebra.exact.ExactSum`."""
Emitted: TypeAlias = tuple[list[Codes], Codes, Slots]
ReadSpec: TypeAlias = tuple[int, Sequence[int], bool, int]
"""(map, for each of its columns the column of the joined delta or -1, payload multiplies, pending register or -1)."""
PieceSpec: TypeAlias = tuple[int, Sequence[int], Sequence[int], Sequence[int], Sequence[int]]
"""(parent or -1, columns that it shares with it or with the request, which of theirs they are, columns that it brings,
which of the outputs they are)."""
Step: TypeAlias = tuple[Any, ...]
"""One of, with registers and maps by number and columns by position:

- ("load", target, input, columns, [(column, code)], [(column, column)], not-null columns, [(lift, column)]), where a
  lift is "none", "one", "count", "int", "float" (of an order-preserving code) or "wide" (low and high word, two
  columns), each of the last three also with " square" behind it; or "float product" (of a column and the
  next one); those of joint slots have "joint " before them
- ("store", input, columns, heap, whether weights may be negative): adds rows to a table; `BrokenCheck` as for "add"
- ("scan", target, map, indicator)
- ("join", target, origin, number of new columns, [ReadSpec])
- ("project", target, origin, columns)
- ("distinct", target, origin, columns): each tuple once, with the payload 1
- ("exists", target, origin, map)
- ("filter", target, origin, map, columns, present)
- ("add", origin, map, check): "present" refuses counts below zero and "unique" all but 0 and 1, with `BrokenCheck`
- ("emit", origin): `run` returns the delta
- ("watch", origin, partition, columns of the key, leaf): notes the keys that have to change sides
"""

class PayloadOverflow(OverflowError): ...  # noqa: N818
class CapacityError(MemoryError): ...
class StaleCursor(RuntimeError): ...  # noqa: N818

class BrokenCheck(Exception):  # noqa: N818
    """Its arguments are the check and the codes of the entry."""

class Dictionary:
    """Strings (or bytes) by code: base, base + 1, and so on in the order of their coming; codes that were taken back
    come first.

    With `numbers` they are big-endian numbers, and codes below the base are numbers that lie between the negative ones
    and the others.
    """

    def __init__(self, seed: int, base: int = 0, binary: bool = False, numbers: bool = False) -> None: ...
    def __len__(self) -> int: ...
    def encode(self, values: Sequence[Any]) -> Codes: ...
    def encode_one(self, value: Any) -> int: ...
    def find(self, value: Any) -> int | None: ...
    def encode_arrow(
        self,
        offsets: npt.NDArray[Any],
        data: npt.NDArray[np.uint8],
        validity: npt.NDArray[np.uint8] | None = None,
        first: int = 0,
    ) -> Codes: ...
    def load(self, offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], valid: npt.NDArray[np.uint8], /) -> bool:
        """Gives values the codes from the base on, none where one is not valid; False if it was not empty, or a value
        is there twice."""
    def present(self) -> npt.NDArray[np.uint8]:
        """For each code from the base on, 1 if a value has it."""
    def decode(self, codes: Codes) -> list[Any]: ...
    def decode_one(self, code: int) -> Any: ...
    def decode_arrow(self, codes: Codes) -> tuple[Codes, npt.NDArray[np.uint8]]: ...
    def memory_bytes(self) -> int: ...

class CodeTable:
    """What a function of one coded column gives, by code; codes are `base` and up, and NULL."""

    def __init__(self, base: int = 0) -> None: ...
    def requested(self) -> Codes:
        """The codes that were looked up and are missing."""
    def withdraw(self) -> None:
        """Forgets the requests, but no value."""
    def fill(self, codes: Codes, values: Codes, states: npt.NDArray[np.uint8]) -> None:
        """Sets values; a state is 1 if the value is known, and 2 if it is doubtful."""
    def forget(self) -> None: ...
    def memory_bytes(self) -> int: ...

class Expressions:
    """A program of typed instructions over columns of codes; see `expression.hpp` and `ivme.engine.expression.graph`.

    `kinds` has a letter for each register; `members` are the codes of IN lists, each with whether NULL is in it. An
    instruction: operation, target, first and second operand, mask, and a number. The caller holds the lock of the
    database whose codes it computes with.
    """

    def __init__(
        self,
        inputs: int,
        kinds: str,
        outputs: int,
        foreign: int,
        tables: list[CodeTable],
        members: list[tuple[list[int], bool]],
        dictionaries: list[Dictionary],
        instructions: Sequence[tuple[str, int, int, int, int, int]],
    ) -> None: ...
    is_current: bool
    """Whether the codes of constants are those that their values have; rows are not computed otherwise."""
    def set_constant(self, register: int, low: int, high: int) -> None: ...
    def run(
        self, columns: Sequence[Codes], rows: int, foreign: Sequence[tuple[Codes, npt.NDArray[np.uint8]]]
    ) -> tuple[Codes, Codes, list[Codes] | None]:
        """The outputs, a row of the array each; the rows that are doubtful; None, or missing rows by foreign column.

        If the last is not None, tables may have requests, too, and the rest counts for nothing.
        """
    def run_row(self, codes: tuple[int, ...]) -> tuple[int, ...] | None:
        """The codes and the outputs behind them; None if anything is missing or doubtful."""
    def withdraw(self) -> None: ...

class ArrowColumns:
    """Takes record batches to codes. A column: its name, its format in Arrow's C data interface, the least and the
    greatest number that it may hold, and the dictionary of strings or bytes."""

    def __init__(self, columns: Sequence[tuple[str, str, int, int, Dictionary | None]]) -> None: ...
    def encode(self, capsules: tuple[Any, Any], /) -> list[Codes] | None:
        """The codes of each column; None if the data are no rows of these columns, or a value is in doubt. Columns
        that are their own codes share Arrow's memory. The capsules are those of `__arrow_c_array__`, of data that Arrow
        has validated."""

class Cursor:
    """An enumeration under way.

    One that is `pinned` reads its maps as they were when it was opened; `StaleCursor` is raised if there was no memory
    for that. Others raise it once one of their maps has changed.
    """

    @property
    def pinned(self) -> bool: ...
    def next_block(self, max_rows: int = 8192) -> tuple[list[Codes], Codes, Slots, list[Codes]]:
        """The next rows: output columns, counts, slots, extremes. No rows means the end.

        An extreme is "min", "max", "count_distinct" or "values", all values of a group: these are places in one more
        array behind the extremes, where their number begins, and then each value with its count. Those of a percentile
        are the one or two values at its position, with the counts of all that are before or behind them."""

class Kernel:
    """One writer, many readers: each sees whole batches only, and the GIL is free while a batch runs."""

    def __init__(self, seed: int) -> None: ...
    def add_map(self, arity: int, slots: Sequence[str], key: Sequence[int] = ()) -> int:
        """A map without entries; with a key, they are hashed by these columns, and found by them without an index."""
    def add_index(self, map: int, key: Sequence[int], values: Sequence[int]) -> None: ...
    def add_sorted(
        self, map: int, key: Sequence[int], value: int, order: Dictionary | None = None, counted: bool = False
    ) -> None:
        """An index of groups in the order of a column; one that is `counted` also finds values by their position."""
    def drop_map(self, map: int) -> None: ...
    def clear_map(self, map: int) -> None: ...
    def load_map(self, map: int, records: Codes) -> None:
        """Fills a map without entries with what `dump_map` gave; an entry twice or without a count is a ValueError."""
    def size(self, map: int) -> int: ...
    def add_heap(self, columns: int, key: Sequence[int], is_kept: bool = True) -> int:
        """A table: rows as columns, with an index on its key if it has one. If it keeps no rows, it counts them."""
    def drop_heap(self, heap: int) -> None: ...
    def heap_size(self, heap: int) -> int:
        """How many rows there are; equal ones count more than once until they are distinct."""
    def heap_changes(self, heap: int) -> int:
        """How many rows have been added or taken away so far, those of changes that were undone among them."""
    def heap_is_distinct(self, heap: int) -> bool: ...
    def heap_weight(self, heap: int, row: Sequence[int]) -> int:
        """The weight of a row; from here on rows are distinct."""
    def let_be_loose(self, heap: int, column: int, strings: Dictionary, /) -> bool:
        """From now on a column may have loose strings; False if it cannot."""
    def heap_rows(
        self, heap: int, columns: Sequence[int] | None = None, loose: bool = False
    ) -> tuple[list[Codes], Codes]:
        """With `loose`, equal strings may have several codes."""
    def heap_rows_of_keys(self, heap: int, keys: Sequence[Codes]) -> list[Codes]:
        """The rows that have one of some distinct primary keys, by column."""
    def heap_places(self, heap: int) -> tuple[int, int]:
        """How many places for rows there are, and how often rows have been moved to others."""
    def heap_column(self, heap: int, column: int, first: int, end: int) -> Codes:
        """A column at some of the places; where the weight is zero, there is no row."""
    def heap_small_weights(self, heap: int) -> tuple[npt.NDArray[np.uint8], Codes, Codes]:
        """The weights of all places, 255 for those that are larger or below zero: these come by their places."""
    def heap_weights(self, heap: int, first: int, end: int) -> Codes: ...
    def add_trigger(self, registers: int, slots: Sequence[str], steps: list[Step]) -> int: ...
    def drop_trigger(self, trigger: int) -> None: ...
    def add_partition(self, heavy: int, degrees: Sequence[Sequence[tuple[int, Sequence[int], Sequence[int]]]]) -> int:
        """The parts of each leaf: (map, key columns, value columns) as in `add_index`; values may be empty, and a key
        that is all of the map then counts 1 if it is there."""
    def drop_partition(self, partition: int) -> None: ...
    def set_bounds(self, partition: int, lower: int, upper: int) -> None:
        """A light key rises at a degree >= upper in some leaf; a heavy one falls at degrees < lower in all."""
    def net(self, columns: Sequence[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
        """Rows with equal codes as one, with the sum of their weights; none where that is zero."""
    def take_noted(self, partition: int) -> tuple[list[Codes], list[Codes]]:
        """The keys noted as rising and as falling that still are, by column; none is noted afterwards.

        A transaction that is rolled back takes back what it noted and what it took."""
    def sweep(self, partition: int, position: int, count: int) -> int:
        """Notes the keys on the wrong side among the next entries, from 0 on; where to go on, -1 at the end."""
    def census(self, partition: int, threshold: int) -> tuple[list[Codes], list[Codes]]:
        """The light keys with a degree >= threshold in some leaf, and the heavy keys that have it in none."""
    def add_reader(
        self,
        inputs: int,
        variables: int,
        outputs: Sequence[int],
        loops: Sequence[tuple[int, Sequence[int], Sequence[int]]],
        factors: Sequence[tuple[int, Sequence[int]]],
        extremes: Sequence[tuple[str, int, Sequence[int], int, float, bool]],
        guards: Sequence[tuple[int, Sequence[int], Sequence[int]]] = ...,
        exact: bool = False,
    ) -> int:
        """Variables are numbers, inputs first. A loop: (map, variables of its columns, those it yields).

        An extreme: (function, map, variables of its columns, the column of the value, the fraction of a percentile and
        whether its order is descending). A guard: (map, columns of its key, their inputs); a request without a match
        has no rows. With `exact`, sums of floats come as they are, and not rounded."""
    def add_union(
        self,
        inputs: int,
        outputs: int,
        asked: Sequence[int],
        branches: Sequence[tuple[Sequence[int], Sequence[int], int | None]],
        disjoint: bool,
        exact: bool,
        answered: bool = False,
        pieces: Sequence[PieceSpec] = ...,
    ) -> int:
        """A reader of several branches, which takes over the readers and triggers that it is made of.

        A branch: the readers of its segments, each given the inputs and what the one before it kept; the readers of
        its guards, which must have a row; and the trigger that takes the inputs `asked` and the outputs to their
        payloads in this branch. `disjoint` branches have no row in common and need no such trigger; those of a view
        without outputs need nothing else. If `answered`, the trigger of the only branch takes the inputs `asked` to all
        rows, and there are no segments; with `pieces` it emits a delta for each of these, and rows are their join."""
    def drop_reader(self, reader: int) -> None: ...
    def run(self, trigger: int, inputs: Sequence[Input]) -> list[Emitted]:
        """Runs a batch through a trigger, all or nothing; the emitted deltas."""
    def run_many(self, runs: Sequence[tuple[int, Sequence[Input]]]) -> list[list[Emitted]]:
        """Runs triggers, each over inputs of its own, all or nothing; the deltas that each emitted."""
    failed_run: int
    """Which of the triggers was refused, where `run_many` was."""
    threads: int
    """On how many threads batches of many rows run."""
    batches_shared: int
    """How many batches several threads ran."""
    loads_taken: int
    """How many loads of triggers had been done before it was their turn."""
    def run_one(self, trigger: int, codes: tuple[int, ...], weight: int) -> list[Emitted] | None:
        """`run` for one row of the only input; the list is None if nothing is emitted."""
    def run_all(self, runs: list[tuple[int, list[Codes], Codes]]) -> None:
        """Runs triggers, each with columns and weights of its only input, all or nothing; what they emit is lost."""
    def begin(self) -> None:
        """Opens a transaction: the runs until `commit` are all or nothing together."""
    def commit(self) -> None:
        """Ends the transaction that is open, also another thread's; nothing if none is."""
    def limit_old_maps(self, bytes: int, /) -> None:
        """Maps that changed under a reader are kept as they were up to so many bytes."""
    @property
    def pinned_maps(self) -> int:
        """How many maps are being read by cursors that have pinned them."""
    @property
    def old_bytes(self) -> int:
        """The bytes of maps as they were before they changed."""
    def waits(self) -> list[int]:
        """How often the kernel's lock was taken at once, or after waiting; see `StateLock.waits`."""
    def roll_back(self) -> None: ...
    def alive(self) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
        """The numbers of all maps, partitions, triggers and readers."""
    def open(self, reader: int, inputs: Sequence[int], whole: bool = False) -> Cursor:
        """With `whole`, all rows of overlapping branches come as one block, summed rather than probed."""
    def request(
        self, reader: int, inputs: Sequence[int], limit: int, waits: bool = True
    ) -> tuple[list[list[int]], list[int], list[list[Any]], list[list[int]]] | None:
        """The answer to one request as lists, of a block's form; None if it has more rows than the limit, or if a
        writer is at work and it `waits` for none."""
    def request_many(
        self, reader: int, columns: Sequence[Codes]
    ) -> tuple[Codes, list[Codes], Codes, Slots, list[Codes]]:
        """The rows of many access requests, each with the number of its request in front.

        Unlike in `open`, NULL matches the NULLs that are there: a row may be asked for by its outputs."""
    def scan(self, map: int) -> Emitted: ...
    def dump_map(self, map: int) -> Codes:
        """All entries as they are stored, one behind the other: the codes, then the words of the payload."""
    def get(self, map: int, codes: Sequence[int]) -> tuple[Any, ...] | None: ...
    def limit(self, map: int, limits: Sequence[str]) -> list[tuple[int, ...]]:
        """What each sum of a map must fit: "int", "decimal" (38 digits), or "" for anything; which entries do not."""
    def misfits(self) -> list[tuple[int, tuple[int, ...]]]:
        """The maps and codes of the entries that the open transaction left with sums beyond their limits."""
    def is_sweep_due(self, dictionaries: list[Dictionary], least: int, /) -> bool:
        """Whether so many codes may be held no more that looking for them costs little for each; few never are."""
    def sweep_codes(self, dictionaries: list[Dictionary], held: Sequence[Codes], /) -> None:
        """Takes back the codes that neither an entry of a map nor `held` has; not within a transaction."""
    def memory_bytes(self) -> int: ...
    def release_buffers(self) -> None:
        """Gives back what batches left for the next ones; between two transactions."""
    def digest(self) -> int:
        """The logical contents of all maps and indexes as one number, whatever their order in memory."""
    def verify(self) -> None:
        """Raises if an index does not say what its map says."""
    @property
    def operations(self) -> int: ...
    @property
    def scans(self) -> int:
        """How often a step read a whole map, or a census all keys."""

class SharedSide:
    """A lock as its readers take it."""

    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

class StateLock:
    """A lock that its thread may take again, and that no asynchronous exception leaves taken in a `with`.

    A thread has it alone, or as `shared` with other readers; a thread that has it alone and takes it as a reader still
    has it alone. Writers and readers that wait take turns. The thread that takes it first, or lets go of it last, calls
    `pending.settle()` if something is pending.
    """

    @property
    def shared(self) -> SharedSide: ...
    def waits(self) -> list[int]:
        """How often it was taken at once (the first number), or after waiting for less than 1, 2, 4, ... µs."""

    pending: Any
    def __init__(self) -> None: ...
    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

class RowEncoder:
    """Rows of Python values to codes; columns are those of `ivme.engine.ingest.row_columns`."""

    def __init__(self, columns: list[Any]) -> None: ...
    def encode(self, rows: list[Any]) -> list[Codes] | None:
        """The codes of each column; None if a row is not as it should be, or a value in doubt."""

class LogEnd:
    """The end of a log, where the kernel writes records of a few rows; see `ivme.store.log_state`.

    `calls` has the function `write` of files; the kernel writes by itself while that is the one that is given.
    `changed` gets the tables that its records change; `identity` is that of the directory.
    """

    def __init__(self, identity: str, calls: dict[str, Any], write: Callable[..., int], changed: set[str]) -> None: ...
    descriptor: int
    first: int
    place: int
    written: int
    durable: int
    older: int
    limit: int
    usable: bool
    unfinished: bool
    awake: bool
    waits: bool
    told: tuple[int, int, int]
    taken: tuple[int, int, int]
    wake: Callable[[], None] | None

class RowPath:
    """The way of a table's single rows: encoded, with the expressions over them, and through the triggers of the table.

    Columns are those of `ivme.engine.ingest.row_columns`. `compute` takes a row's codes where the expressions turn
    back, and returns those of all columns, or None. Each run is a trigger with the places of the codes that it wants.
    """

    def __init__(
        self,
        kernel: Kernel,
        columns: list[Any],
        expressions: Expressions | None,
        compute: Callable[[tuple[int, ...]], tuple[int, ...] | None] | None,
        runs: list[tuple[int, list[int]]],
    ) -> None: ...
    def take_arrow(
        self,
        columns: object,
        key: list[int],
        prepare: Callable[[list[Codes], int], bool] | None,
        loose: list[int],
        unread: list[int],
    ) -> None:
        """Record batches may come, too; the columns of the key are never NULL.

        `prepare` fills in what the expressions lack over columns, and says whether they turn back no more. The strings
        of the columns `loose`, which nothing but the table takes, may be loose. Those `unread`, which nothing takes at
        all, are only checked.
        """
    def encode(self, row: object) -> tuple[int, ...] | None:
        """The codes of a row that is a tuple, a list, a dict or a dataclass; None if the batch path has to take it."""
    def run(self, codes: tuple[int, ...], weight: int) -> None:
        """Runs all triggers, or none; as a transaction of its own if none is open."""
    def apply(self, row: object, weight: int) -> bool:
        """Encodes and runs; False, and nothing changed, if the batch path has to take the row."""
    def apply_all(self, rows: list[object], weight: int) -> bool:
        """The same for the rows of a list, all or none."""
    def set_chain(self, chain: ViewChain, relation: int) -> None:
        """From now on the views on views over a table change with it; here it is the relation of that number."""
    def set_light(self, number: int, trigger: int, places: list[int], empty: list[int], /) -> None:
        """As long as these maps are empty, another trigger takes the place of the one of that number."""
    def set_log(self, end: LogEnd, table: str, name: str, /) -> bool:
        """Rows that are applied are written to a log, too, under the table's name in JSON; False if it cannot be."""
    def set_balance(self, number: int, balance: Balance, /) -> None:
        """The trigger of that number is of a view with heavy and light parts: from now on rows after which its balance
        does not hold are left to the batch path."""

class ViewChain:
    """The views between tables and what is shown: the kernel tells the change of each, and passes it on."""

    def __init__(self, kernel: Kernel) -> None: ...
    def add_view(
        self, width: int, places: Sequence[int], hides: bool, is_union: bool, numbers: Sequence[int]
    ) -> int: ...
    def set_groups(
        self,
        view: int,
        kept: KeptRows,
        reader: int,
        values: Sequence[tuple[str, int, int, int, int, int]],
        nothing: Sequence[int],
    ) -> None: ...
    def set_teller(self, lock: StateLock, tell: Callable[[list[tuple[int, list[Codes]]]], object], /) -> None:
        """From now on `tell` is given the changes of followed views before they are committed: the number of the view,
        and the columns that it shows with the weights behind them. What it returns is pending at the lock then.
        """
    def set_told(self, view: int, /) -> None:
        """Somebody follows the view."""
    def set_distinct(self, view: int, reader: int, /) -> None:
        """Rows of the view are there or not; the reader says how often they are."""
    def set_readers(self, view: int, path: RowPath, relation: int, prepare: Callable[..., bool] | None) -> None: ...
    def set_emits(self, trigger: int, views: Sequence[int]) -> None: ...
    def add_branch(
        self,
        relation: int,
        view: int,
        program: Expressions | None,
        prepare: Callable[..., bool] | None,
        columns: Sequence[int],
        test: int,
        factor: int,
    ) -> None: ...

class Balance:
    """Whether a view with heavy and light parts stays as it is: N within limits, no key that has to change sides."""

    rows: int
    def __init__(
        self, kernel: Kernel, partitions: Sequence[int], maps: Sequence[int], heaps: Sequence[int], /
    ) -> None: ...
    def set_limits(self, least: int, most: int, often: int, /) -> None:
        """N is at least `least` and below `most`; `often` is how often a value may come in a piece of a batch."""

    def holds(self) -> bool: ...

class EncodedRows:
    """A record batch as codes, of a table that has a path."""

    def __len__(self) -> int: ...
    def columns(self) -> list[Codes | None]:
        """The codes of each column, None for loose strings; to be called once, as the rows are spent then."""

class RowsAhead:
    """The record batches of a batch that another thread copies, and encodes."""

    def take(self) -> bool:
        """Waits for the codes; False if the batch path has to take a record batch.

        From then on the memory of the record batches that were given is not read.
        """
    def rows(self) -> list[EncodedRows]:
        """The codes of each record batch, once they were taken; nothing more is done ahead from then on."""
    def data(self, part: int, /) -> Any | None:
        """The copy of one, as the second capsule of `__arrow_c_array__`, once they were taken; None if there is none.

        Columns that no view can read any more are full of NULLs.
        """

class RowGate:
    """Rows of the tables that have a path here, one or a list as a transaction; False for all others.

    It also declines while it is not open, while the lock is taken, an answer is being read or a user's function runs,
    and when there are no `rows_left`.
    """

    def __init__(self, lock: StateLock, open_reads: dict[int, Any], running: Any, rows_left: int) -> None: ...
    is_open: bool
    rows_left: int
    def set_path(self, table: str, path: RowPath, deletes: bool, counts: bool) -> None:
        """Whether rows may be deleted, and whether they count."""
    def forget(self) -> None: ...
    def encode(self, table: object, capsules: tuple[Any, Any], weight: int) -> EncodedRows | None:
        """The codes of a record batch that Arrow has validated, as `__arrow_c_array__` gives it; None as before."""
    def encode_ahead(self, changes: list[tuple[str, Any, int]], /) -> RowsAhead | None:
        """The same for record batches of several tables, with their weights, begun on another thread.

        None if there is none, if a table comes twice, or as before.
        """
    def apply_encoded(
        self, parts: list[tuple[EncodedRows, int]], record: tuple[bytes, list[Any], int] | None = None
    ) -> bool:
        """Encoded rows of several tables, each with a weight for all of its rows, as one transaction.

        `record` is what the log says about them, if they are logged: its text, the bytes behind, and their CRC-32.
        """
    def apply_rows(self, changes: list[tuple[str, object, int]]) -> bool:
        """A few rows, each with its table and its weight, as one transaction, in this order."""
    def apply(self, table: object, rows: list[Any], weight: int) -> bool:
        """A short list of rows, all or none; False for a long one."""

def sum_codes(sums: Codes, counts: Codes, most: int, /) -> Codes | None:
    """The codes of sums of whole numbers, NULL where nothing is counted; None if one is not within `most`.

    Numbers of several words have a row each, the low word first.
    """

def mean_codes(sums: Codes, counts: Codes, /) -> Codes | None:
    """Those of their means as floats; None if one would be rounded twice."""

def decimal_mean_codes(sums: Codes, counts: Codes, factor: int, most: int, /) -> Codes | None:
    """Those of the means of decimals, in units that are so much finer; None if one is not within `most`."""

def variance_codes(
    sums: Codes, squares: Codes, counts: Codes, unit: int, root: bool, population: bool, /
) -> Codes | None:
    """Those of variances, or their roots, of whole numbers in units whose square is 1 / `unit`; None if one
    takes more than 127 bits. `squares` are the totals of the squares, three words each."""

def float_codes(sums: npt.NDArray[np.float64], counts: Codes, mean: bool, /) -> Codes:
    """Those of sums of floats, or of their means."""

class KeptRows:
    """Rows by the codes of their groups: so many columns of keys, so many of values."""

    def __init__(self, keys: int, values: int, seed: int) -> None: ...
    def __len__(self) -> int: ...
    def compare(
        self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes]
    ) -> tuple[list[Codes], Codes]:
        """What rows groups had and have no more (weight -1), and have now (+1): keys, then values, and the weights.

        There are so many groups. `numbers` are those that have a row now, which `values` has in the same order.
        """
    def put(self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes]) -> None:
        """Keeps the rows that groups have now, and none of those that have no row any more."""
    def columns(self) -> list[Codes]:
        """All rows by column: keys, then values."""
    def memory_bytes(self) -> int: ...

class OrderedMap:
    """Rows of codes in an order, with groups and sums; see `ivme.engine.ordered.OrderedMap`."""

    def __init__(
        self,
        columns: Sequence[tuple[int, bool, bool, Dictionary | None, bool]],
        groups: int,
        summed: Sequence[int],
        room: int = 0,
    ) -> None:
        """The columns in the order in which they are compared: the position in a row, whether it is descending, whether
        NULLs are first, the dictionary of its codes, and whether the first bytes of strings are kept beside them.

        For tests, `room` is how many rows and children nodes have at most."""
    def __len__(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def operations(self) -> int: ...
    def load(self, columns: Sequence[Codes], weights: Codes, /) -> None: ...
    def apply(self, columns: Sequence[Codes], weights: Codes, /) -> None: ...
    def apply_shown(
        self, columns: Sequence[Codes], weights: Codes, window: tuple[int, int, int, int], /
    ) -> tuple[list[Codes], Codes]: ...
    def commit(self) -> None: ...
    def roll_back(self) -> None: ...
    def ranks(self, columns: Sequence[Codes], n: int, after: bool, /) -> Codes: ...
    def shown(self, groups: Sequence[Codes], n: int, window: tuple[int, int, int, int], /) -> tuple[Codes, Codes]: ...
    def all_shown(self, window: tuple[int, int, int, int], /) -> tuple[Codes, Codes]: ...
    def rows(self, first: Codes, last: Codes, /) -> tuple[Codes, list[Codes], Codes]: ...
    def totals(self, ranks: Codes, /) -> tuple[list[Codes], list[Codes]]: ...
    def codes(self) -> list[Codes]: ...
    def check(self) -> None: ...
    def memory_bytes(self) -> int: ...

def bytes_copied() -> int:
    """How many bytes arrays and tables have copied on this thread as they grew."""

def share_encoding_from(values: int) -> int:
    """For tests: threads share the encoding of record batches of so many values; how many it took before."""

def encode_ahead_from(values: int) -> int:
    """For tests: another thread encodes record batches ahead from so many values on; how many it took before."""

def cut_batches_into(rows: int) -> int:
    """For tests: threads take batches in pieces of so many rows at least; how many it took before."""

def limit_allocations(budget: int) -> None:
    """For tests: lets this many more allocations of this thread succeed; a negative budget lifts the limit."""

def limit_memory(room: int | None, limit: int) -> None:
    """Lets arrays of this thread grow by so many bytes more, until it lets go of its `StateLock`; beyond that an
    allocation fails with `ivme.errors.MemoryLimitError`, which names the limit. With None there is no limit."""

class Cycle(Exception):  # noqa: N818
    """An edge would close a cycle where none may be; the argument is its nodes' codes, the first again at the end."""

class ClosureCursor:
    """An enumeration of pairs; it says so (`StaleCursor`) once the closure has changed."""

    def next_block(self, max_rows: int = 8192) -> tuple[Codes, Codes]: ...

class Closure:
    """The closure of a bag of edges, of kind "digraph", "acyclic" or "undirected"; see `ivme.closure.engine`."""

    def __init__(self, kind: str, seed: int) -> None: ...
    def change(self, start: Codes, end: Codes, weights: Codes, /) -> None: ...
    def commit(self) -> None: ...
    def roll_back(self) -> None: ...
    def follow(self, on: bool, /) -> None: ...
    def changed(self) -> tuple[Codes, Codes, Codes]: ...
    def reaches(self, start: int, end: int, /) -> bool: ...
    def reaches_many(self, start: Codes, end: Codes, /) -> Codes: ...
    def targets(self, start: int, most: int, /) -> list[int] | None: ...
    def targets_many(self, start: Codes, /) -> tuple[Codes, Codes]: ...
    def codes(self) -> Codes: ...
    def path(self, start: int, end: int, /) -> list[int]: ...
    def open(self) -> ClosureCursor: ...
    def open_from(self, start: int, /) -> ClosureCursor: ...
    def check(self) -> None: ...
    def memory_bytes(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def components(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def operations(self) -> int: ...
