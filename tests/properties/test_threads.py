"""Batches on several threads: after each batch, refused ones among them, everything is as it is on one thread."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ivme._kernel import Kernel
from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.errors import DataError, IvmeError, SchemaError
from tests.example_counts import some_of

pytestmark = pytest.mark.usefixtures("shared_encoding")

TABLES: dict[str, dict[str, str]] = {
    "customers": {"c": "int", "city": "string", "note": "string"},
    "orders": {"o": "int", "c": "int", "price": "decimal(12, 2)", "weight": "float", "note": "string"},
    "lines": {"o": "int", "part": "int", "amount": "int", "mode": "string", "note": "string", "bytes": "binary"},
}
KEYS = {"customers": ["c"], "orders": ["o"], "lines": None}

VIEWS = {
    "cities": "SELECT city, COUNT(*) AS n, SUM(price) AS total FROM customers JOIN orders USING (c) GROUP BY city",
    "weights": "SELECT c, SUM(weight) AS total, MAX(weight) AS most FROM orders GROUP BY c",
    "parts": """
        SELECT city, part, SUM(amount) AS amount FROM customers JOIN orders USING (c) JOIN lines USING (o)
        WHERE mode <> 'RAIL' GROUP BY city, part""",
    "counted": "SELECT COUNT(*) AS n FROM orders JOIN lines USING (o)",
    "modes": "SELECT mode, COUNT(DISTINCT part) AS parts FROM lines GROUP BY mode",
    "without": "SELECT c, COUNT(o) AS orders FROM customers LEFT JOIN orders USING (c) GROUP BY c",
    "large": "SELECT c, total FROM weights WHERE total > 50",
    "worth": "SELECT c, SUM(price * 3 - c) AS worth FROM orders WHERE price / 2 > 100 GROUP BY c",
    "pairs": "SELECT a.part, COUNT(*) AS n FROM lines a JOIN lines b ON a.o = b.o WHERE a.amount < 3 GROUP BY a.part",
}
MODES = ["AIR", "RAIL", "SHIP", "TRUCK", None]


class Stream:
    """Rows of the tables that are there, and batches of changes over them; some are refused."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self.made = 0

    def row(self, table: str) -> tuple[Any, ...]:
        self.made += 1
        rng = self.rng
        note = f"note {self.made}" if rng.random() < 0.8 else rng.choice(["", "schön", None])
        if table == "customers":
            return self.made, f"city {rng.randrange(12)}", note
        if table == "orders":
            return self.made, rng.randrange(1, 3000), Decimal(rng.randrange(10**6)) / 100, rng.uniform(0, 9), note
        blob = None if rng.random() < 0.1 else rng.randbytes(rng.randrange(4))
        return rng.randrange(1, 9000), rng.randrange(40), rng.randrange(9), rng.choice(MODES), note, blob

    def batch(self) -> list[tuple[str, int, list[tuple[Any, ...]]]]:
        """Rows that come, or go, each table once; of one table so many that threads share the work."""
        changes = []
        for table in self.rng.sample(list(TABLES), self.rng.randrange(1, 4)):
            there = self.rows[table]
            if len(there) > 2000 and self.rng.random() < 0.4:
                changes.append((table, -1, self.rng.sample(there, self.rng.randrange(1, len(there)))))
            else:
                changes.append((table, 1, [self.row(table) for _ in range(self.rng.randrange(1, 4000))]))
        return changes

    def spoiled(self, changes: list[tuple[str, int, list[tuple[Any, ...]]]]) -> bool:
        """Whether a row was put in that is refused: a key that is there, or a delete of what is not."""
        table, sign, rows = changes[-1]
        if sign < 0:
            rows.insert(self.rng.randrange(len(rows) + 1), self.row(table))
        elif KEYS[table] and self.rows[table]:
            rows.insert(self.rng.randrange(len(rows) + 1), self.rng.choice(self.rows[table]))
        else:
            return False
        return True

    def keep(self, changes: list[tuple[str, int, list[tuple[Any, ...]]]]) -> None:
        for table, sign, rows in changes:
            if sign > 0:
                self.rows[table] += rows
            else:
                gone = Counter(rows)
                left = []
                for row in self.rows[table]:
                    if gone[row]:
                        gone[row] -= 1
                    else:
                        left.append(row)
                self.rows[table] = left


def made(threads: int) -> Database:
    db = Database(threads=threads)
    for table, columns in TABLES.items():
        db.create_table(table, columns, primary_key=KEYS[table])
    for name, query in VIEWS.items():
        db.create_view(name, query)
    return db


def arrow(db: Database, table: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = db.table(table).to_arrow().schema
    columns = list(zip(*rows, strict=True))
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema)


def applied(db: Database, changes: list[tuple[str, int, list[tuple[Any, ...]]]]) -> str | None:
    """Applies a batch; the message if it is refused."""
    try:
        with db.batch() as batch:
            for table, sign, rows in changes:
                (batch.insert if sign > 0 else batch.delete)(table, arrow(db, table, rows))
    except DataError as error:
        return str(error)
    return None


def kernel_of(db: Database) -> Kernel:
    backend = db._runtime.backend
    assert isinstance(backend, NativeBackend)
    return backend.kernel


def in_order(db: Database) -> dict[str, list[Any]]:
    return {name: list(map(tuple, db.view(name))) for name in VIEWS} | {
        name: list(map(tuple, db.table(name))) for name in TABLES
    }


def contents(db: Database) -> dict[str, Counter[Any]]:
    return {name: Counter(rows) for name, rows in in_order(db).items()}


def check(seed: int, batches: int) -> None:
    """On two, three or four threads; row by row, until a batch is refused: what it had begun is undone in any order."""
    stream = Stream(seed)
    look: Callable[[Database], dict[str, Any]] = in_order
    with made(1) as alone, made(2 + seed % 3) as shared:
        if seed % 2:
            changes = [alone.view("parts").changes(), shared.view("parts").changes()]
        for number in range(batches):
            batch = stream.batch()
            is_spoiled = stream.rng.random() < 0.3 and stream.spoiled(batch)
            said = applied(alone, batch)
            assert applied(shared, batch) == said
            assert (said is not None) == is_spoiled, number
            if said is None:
                stream.keep(batch)
            look = look if said is None else contents
            assert look(shared) == look(alone), number
            if seed % 2:
                assert [list(each) for each in changes[:1]] == [list(each) for each in changes[1:]]
        assert contents(shared)["lines"] == Counter(stream.rows["lines"])
        kernel_of(shared).verify()
        for name in VIEWS:
            shared.view(name).verify()
        assert kernel_of(alone).batches_shared == 0
        assert kernel_of(shared).batches_shared > batches // 2


@pytest.mark.parametrize(("seed", "batches"), [(0, 3), pytest.param(0, 8, marks=pytest.mark.long)])
def test_threads_change_nothing(seed: int, batches: int) -> None:
    check(seed, batches)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 30))
def test_threads_change_nothing_at_length(seed: int) -> None:
    check(seed, 25)


@pytest.mark.parametrize("threads", some_of([1, 3], 3))
def test_a_key_that_comes_twice_is_refused_wherever_it_is(threads: int) -> None:
    """The columns of a table are stored by several threads, and none of them remain."""
    columns = {f"c{i}": "int" if i < 8 else "string" for i in range(16)}
    with Database(threads=threads) as db:
        db.create_table("wide", columns, primary_key=["c3", "c5"])
        db.create_view("counted", "SELECT c0, COUNT(*) AS n, MAX(c9) AS most FROM wide GROUP BY c0")
        there: list[tuple[Any, ...]] = []
        for number, doubled in enumerate([None, 0, 1, 1500, 2999, None, 40]):
            rows = [
                tuple(number * 10_000 + i if c < 8 else f"{c} {number} {i % 100}" for c in range(16))
                for i in range(3000)
            ]
            if doubled is not None:
                rows.insert(doubled, rows[-1] if number % 2 else there[number * 7])
            message = applied(db, [("wide", 1, rows)])
            assert (message is None) == (doubled is None)
            there += rows if message is None else []
            assert Counter(map(tuple, db.table("wide"))) == Counter(there)
            kernel_of(db).verify()
            db.view("counted").verify()
        gone = there[::2]
        assert applied(db, [("wide", -1, gone)]) is None
        assert Counter(map(tuple, db.table("wide"))) == Counter(there[1::2])


@pytest.mark.long
def test_an_interrupted_batch_leaves_nothing_or_is_there() -> None:
    """Python drops an interrupt that comes in a callback of its collector, which is off for that reason."""
    with made(2) as db:
        stream = Stream(7)
        for table in TABLES:
            db.insert(table, arrow(db, table, [stream.row(table) for _ in range(3000)]))
        before = contents(db)
        batch = arrow(db, "lines", [(i % 3000, i, 1, "AIR", None, None) for i in range(500_000)])
        gc.disable()
        try:
            raised = _interrupted(lambda: db.insert("lines", batch), 0.3)
        finally:
            gc.enable()
        found = contents(db)
        assert (
            found == before
            if raised and found["lines"] == before["lines"]
            else len(batch) + 3000 == found["lines"].total()
        )
        for name in VIEWS:
            db.view(name).verify()


def _interrupted(work: Any, seconds: float) -> bool:
    """Whether work is ended by an interrupt that comes after some time."""
    import _thread
    import threading

    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        timer.cancel()
    return False


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_is_a_number(threads: Any) -> None:
    with pytest.raises(SchemaError, match="threads is a number"):
        Database(threads=threads)


def test_a_forked_process_has_threads_of_its_own() -> None:
    import multiprocessing

    with made(2) as db:
        stream = Stream(9)
        db.insert("customers", arrow(db, "customers", [stream.row("customers") for _ in range(3000)]))
        process = multiprocessing.get_context("fork").Process(target=_insert_and_leave, args=(db, stream))
        process.start()
        process.join(60)
        assert process.exitcode == 0


def _insert_and_leave(db: Database, stream: Stream) -> None:
    """In a child process."""
    db.insert("customers", arrow(db, "customers", [stream.row("customers") for _ in range(3000)]))
    if sum(1 for _ in db.table("customers")) != 6000:
        raise IvmeError("rows are missing")
