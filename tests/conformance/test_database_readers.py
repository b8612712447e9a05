"""Readers beside a writer: what they read is the state after some batch, whole, and never an error.

Each row carries the number of the batch that put it there, which takes all rows of the batch before away.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.runtime import open_read
from ivme.errors import StaleCursor
from tests.databases import make_database

ROWS = 150
JOIN = "SELECT t.batch, t.i, u.j FROM t JOIN u ON t.i = u.i"
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "view-tree": (JOIN, {}),
    "skew": ("SELECT t.batch, u.j, u.j AS k FROM t JOIN u ON t.i = u.i", {"strategy": "skew"}),
    "recompute": (JOIN, {"strategy": "recompute"}),
    "classical": (JOIN, {"strategy": "classical"}),
    "marks": ("SELECT DISTINCT t.batch, t.i FROM t JOIN u ON t.i = u.i", {"strategy": "marks"}),
    "groups": ("SELECT batch, i, COUNT(*) AS n FROM t GROUP BY batch, i", {}),
    "hidden": ("SELECT batch, COUNT(*) AS n FROM t GROUP BY batch, i", {}),
    "closure": ("closed(X, Y) = closure(e)", {}),
}


@pytest.fixture(params=["native", "pure", "durable"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "durable":
        made = Database(tmp_path / "state", durability="async")
    else:
        made = make_database(request.param)
    made.create_table("t", {"batch": "int", "i": "int"})
    made.create_table("u", {"i": "int", "j": "int"})
    made.create_table("e", {"x": "int", "y": "int"})
    made.insert("u", [(i, i) for i in range(ROWS)])
    _fill(made, 0)
    yield made
    made.close()


def _fill(db: Database, batch: int) -> None:
    with db.batch() as changes:
        if batch:
            changes.delete("t", [(batch - 1, i) for i in range(ROWS)])
            changes.delete("e", [(batch - 1, 10**6 + i) for i in range(ROWS)])
        changes.insert("t", [(batch, i) for i in range(ROWS)])
        changes.insert("e", [(batch, 10**6 + i) for i in range(ROWS)])


READERS: dict[str, Callable[[Any], Sequence[Any]]] = {
    "list": list,
    "sorted": sorted,
    "tuple": tuple,
    "for": lambda view: [row for row in view],  # noqa: C416  without asking for a length
    "items": lambda view: [row for row, n in view.items() for _ in range(n)],
    "to_arrow": lambda view: list(zip(*(c.to_pylist() for c in view.to_arrow().columns), strict=True)),
    "count": lambda view: [(0,)] * view.count(),
}


@pytest.mark.parametrize("strategy", VIEWS)
def test_each_reader_reads_the_state_after_some_batch(db: Database, strategy: str) -> None:
    query, options = VIEWS[strategy]
    view = db.create_view("v", query, **options)
    over = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        while not over.is_set():
            for name, reader in READERS.items():
                try:
                    rows = reader(view)
                    if len(rows) != ROWS or len({row[0] for row in rows}) != 1:
                        wrong.append((name, len(rows), Counter(row[0] for row in rows)))
                except BaseException as error:
                    wrong.append((name, error))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for batch in range(1, 25):
            _fill(db, batch)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert [] == wrong


@pytest.mark.parametrize("strategy", ["view-tree", "recompute", "skew"])
def test_a_request_is_complete_when_it_returns(db: Database, strategy: str) -> None:
    db.insert("t", [(0, 0)] * 3)
    options = {} if strategy == "view-tree" else {"strategy": strategy}
    view = db.create_view("v", "SELECT t.i, u.j FROM t JOIN u ON t.i = u.i WHERE t.batch = :batch", **options)
    rows, items = view(batch=0), view.items(batch=0)
    db.delete("t", [(0, i) for i in range(ROWS)])
    assert Counter({(i, i): 4 if i == 0 else 1 for i in range(ROWS)}) == Counter(rows)
    assert {(i, i): 4 if i == 0 else 1 for i in range(ROWS)} == dict(items)
    assert [(0, 0)] * 3 == list(view(batch=0))


@pytest.mark.parametrize("strategy", VIEWS)
def test_an_iterator_goes_on_with_the_state_that_it_began_on(db: Database, strategy: str) -> None:
    query, options = VIEWS[strategy]
    view = db.create_view("v", query, **options)
    rows = iter(view)
    first = list(islice(rows, 3))
    _fill(db, 1)
    db.insert("t", [(7, 7)])
    db.drop_view("v")
    rest = list(rows)
    assert ROWS == len(first) + len(rest)
    assert {0} == {row[0] for row in (*first, *rest)}


def test_an_iterator_that_would_take_too_much_says_that_it_is_stale(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_read, "MOST_FINISHED", 10)
    monkeypatch.setattr(open_read, "MANY", 4)
    _keep_no_old_maps(db)
    view = db.create_view("v", JOIN)
    untouched, begun, listed = iter(view), iter(view), iter(view)
    next(begun)
    assert ROWS == listed.__length_hint__()  # type: ignore[attr-defined]
    _fill(db, 1)
    with pytest.raises(StaleCursor, match="list"):
        list(iter([*begun]))
    assert {0} == {row[0] for row in listed}, "it was read before"
    assert {1} == {row[0] for row in untouched}, "nothing of it had been read"


def _keep_no_old_maps(db: Database) -> None:
    backend: Any = db._runtime.backend
    if backend.shares_reading:
        backend.kernel.limit_old_maps(0)


@pytest.mark.parametrize("read", [list, lambda view: view.to_arrow().to_pylist(), lambda view: [None] * view.count()])
def test_whole_answers_are_never_stale(db: Database, read: Callable[[Any], list[Any]]) -> None:
    """Without memory for what maps were they are read again, and the writer waits."""
    _keep_no_old_maps(db)
    view = db.create_view("v", JOIN)
    over, lengths = threading.Event(), set()

    def reader() -> None:
        while not over.is_set():
            lengths.add(len(read(view)))

    thread = threading.Thread(target=reader)
    thread.start()
    for batch in range(1, 40):
        _fill(db, batch)
    over.set()
    thread.join()
    assert {ROWS} == lengths


def test_an_iterator_that_is_over_or_forgotten_is_not_kept(db: Database) -> None:
    view = db.create_view("v", JOIN)
    backend: Any = db._runtime.backend

    def kept() -> int:
        pinned: int = backend.kernel.pinned_maps if backend.shares_reading else 0
        return bool(pinned) + len(db._runtime.catalog.open_reads)

    rows = iter(view)
    assert 0 == kept()
    next(rows)
    assert 1 == kept()
    del rows
    assert 0 == kept()
    list(view)
    for _ in view:
        pass
    assert 0 == kept()


def test_rows_that_look_the_same_are_one_item(db: Database) -> None:
    """The groups of b are not shown, so that two of them may look the same (issue 15, 8)."""
    db.create_table("g", {"a": "int", "b": "int", "p": "int"})
    db.insert("g", [(1, 1, 5), (1, 2, 5), (2, 3, 5), (2, 3, 5), (3, 4, 6)])
    view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM g GROUP BY a, b")
    assert {(1, 1): 2, (2, 2): 1, (3, 1): 1} == dict(view.items())
    assert 3 == len(list(view.items()))
    assert [(1, 1), (1, 1), (2, 2), (3, 1)] == sorted(view)
    ((batch, counts),) = view.weighted()
    assert {(1, 1): 2, (2, 2): 1, (3, 1): 1} == dict(
        zip(zip(*(c.to_pylist() for c in batch.columns), strict=True), counts.tolist(), strict=True)
    )
    data, weights = db.contents("v")
    assert 3 == len(weights) == data.num_rows
    asked = db.create_view("asked", "SELECT a, COUNT(*) AS n FROM g WHERE p = :p GROUP BY a, b")
    assert [((1, 1), 2), ((2, 2), 1)] == sorted(asked.items(p=5))
    assert [((3, 1), 1)] == sorted(asked.items(p=6))
    assert [] == list(asked.items(p=7))
