"""Iterators that are open while random batches are written, each against the rows at the moment when it began."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.runtime import open_read
from tests.sweeping import sweep

VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "one map": ("SELECT k, s, v FROM r", {}),
    "sums": ("SELECT k, COUNT(*) AS n, SUM(f) AS f, SUM(v) AS v FROM r GROUP BY k", {}),
    "extremes": ("SELECT k, MIN(s) AS low, MAX(v) AS high, COUNT(DISTINCT v) AS n FROM r GROUP BY k", {}),
    "join": ("SELECT r.k, r.s, t.w FROM r JOIN t ON r.k = t.k", {}),
    "projection": ("SELECT DISTINCT r.k, t.w FROM r JOIN t ON r.k = t.k", {}),
    "product": ("SELECT r.v, t.w, COUNT(*) AS n FROM r, t GROUP BY r.v, t.w", {}),
    "median": ("SELECT k, MEDIAN(v) AS m FROM r GROUP BY k", {}),
    "classical": ("SELECT r.k, r.s, t.w FROM r JOIN t ON r.k = t.k", {"strategy": "classical"}),
    "recompute": ("SELECT r.k, r.s, t.w FROM r JOIN t ON r.k = t.k", {"strategy": "recompute"}),
    "union": ("SELECT k, v FROM r UNION ALL SELECT k, w FROM t", {}),
    "on a view": ("SELECT k, SUM(w) AS w FROM below GROUP BY k", {}),
}


class Writer:
    """Random inserts and deletes, some of which make maps grow, shrink and give memory back."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.db = Database()
        self.db.create_table("r", {"k": "int", "s": "string", "v": "int", "f": "float"})
        self.db.create_table("t", {"k": "int", "w": "int"})
        self.db.create_view("below", "SELECT r.k, t.w FROM r JOIN t ON r.k = t.k")
        self.rows: dict[str, list[Any]] = {"r": [], "t": []}
        self.number = 0

    def row(self, table: str) -> tuple[Any, ...]:
        self.number += 1
        key = self.random.randrange(12)
        if table == "t":
            return key, self.random.randrange(6)
        amount = self.random.choice([0.1, 1e300, -1e300, 2.0**-900, 3.5])
        return key, f"name {self.number}", self.random.randrange(8), amount

    def write(self) -> None:
        with self.db.batch() as batch:
            for table, rows in self.rows.items():
                gone = self.random.choice([0, 1, 5, len(rows) // 2, len(rows)])
                self.random.shuffle(rows)
                fresh = [self.row(table) for _ in range(self.random.choice([0, 1, 3, 40]))]
                batch.delete(table, rows[:gone])
                batch.insert(table, fresh)
                self.rows[table] = rows[gone:] + fresh


@pytest.mark.parametrize("name", VIEWS)
def test_an_open_iterator_reads_the_state_that_it_began_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_read, "FIRST_ROWS", 3)
    monkeypatch.setattr(open_read, "BLOCK", 7)
    writer = Writer(11)
    draw = writer.random
    query, options = VIEWS[name]
    view = writer.db.create_view("v", query, **options)
    under_way: list[tuple[Any, Counter[Any], Counter[Any]]] = []
    for _ in range(60):
        writer.write()
        if draw.random() < 0.3:
            sweep(writer.db)
        if len(under_way) < 6:
            expected = Counter(view)
            rows = iter(view)
            under_way.append((rows, expected, Counter(islice(rows, draw.randrange(1, 9)))))
        for rows, expected, found in list(under_way):
            taken = list(islice(rows, draw.choice([0, 1, 4, 30])))
            found.update(taken)
            if sum(found.values()) == sum(expected.values()):
                assert [] == list(rows)
                assert expected == found
                under_way = [each for each in under_way if each[0] is not rows]
    for rows, expected, found in under_way:
        found.update(rows)
        assert expected == found
    view.verify()
    backend: Any = writer.db._runtime.backend
    del rows, under_way
    assert (0, 0) == (backend.kernel.pinned_maps, backend.kernel.old_bytes)


def test_many_threads_read_and_write_at_once() -> None:
    """Amounts move between keys: every state has the same total, and each amount of `one` is some state's."""
    rows, total = 300, 300 * 1000
    db = Database()
    db.create_table("a", {"k": "int", "s": "string", "v": "int"})
    db.insert("a", [(k, f"key {k} 1000", 1000) for k in range(rows)])
    db.create_table("b", {"k": "int"})
    db.insert("b", [(k,) for k in range(rows)])
    every = db.create_view("every", "SELECT a.k, a.s, a.v FROM a JOIN b ON a.k = b.k")
    sums = db.create_view("sums", "SELECT SUM(v) AS v, COUNT(*) AS n FROM a")
    one = db.create_view("one", "SELECT s, v FROM a WHERE k = :k")
    over = threading.Event()
    wrong: list[Any] = []

    def is_right(found: Any) -> bool:
        return sum(v for _, _, v in found) == total and all(s == f"key {k} {v}" for k, s, v in found)

    def read(seed: int) -> None:
        draw = random.Random(seed)
        reads: dict[str, Callable[[], bool]] = {
            "list": lambda: is_right(list(every)),
            "for": lambda: is_right([row for row in every]),  # noqa: C416
            "arrow": lambda: sum(every.to_arrow()["v"].to_pylist()) == total,
            "count": lambda: every.count() == rows,
            "sums": lambda: list(sums) == [(total, rows)],
            "one": lambda: [s.endswith(f" {v}") for s, v in one(k=draw.randrange(rows))] == [True],
            "many": lambda: one.request_many(k=list(range(rows))).num_rows == rows,
            "multiplicity": lambda: every.multiplicity((0, "nothing", 0)) == 0,
        }
        while not over.is_set():
            name = draw.choice(list(reads))
            try:
                if not reads[name]():
                    wrong.append(name)
            except BaseException as error:
                wrong.append((name, error))

    def write(seed: int) -> None:
        draw, amounts = random.Random(seed), dict.fromkeys(range(seed % 2, rows, 2), 1000)
        for _ in range(120):
            source, target = draw.sample(sorted(amounts), 2)
            before = [(k, f"key {k} {amounts[k]}", amounts[k]) for k in (source, target)]
            amounts[source] -= 1
            amounts[target] += 1
            with db.batch() as batch:
                batch.delete("a", before)
                batch.insert("a", [(k, f"key {k} {amounts[k]}", amounts[k]) for k in (source, target)])

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert [] == wrong
    every.verify()
    backend: Any = db._runtime.backend
    assert (0, 0) == (backend.kernel.pinned_maps, backend.kernel.old_bytes)
