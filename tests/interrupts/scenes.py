"""Databases to interrupt, with a model of what they must hold: tables in plain Python, and views computed from them."""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import ivme
from ivme.engine.native_backend import NativeBackend
from ivme.rings import Covariance
from tests.databases import make_database

Rows = Counter[tuple[Any, ...]]
Tables = dict[str, Rows]
View = tuple[str, dict[str, Any], Callable[[Tables], Rows]]
"""A query, its options, and its rows computed from the tables."""

TABLES = {"r": {"a": "int", "b": "int"}, "s": {"b": "int", "c": "int"}, "e": {"x": "int", "y": "int"}}
KEYED = {"k": {"id": "int", "name": "string"}}


def _counts(t: Tables) -> Rows:
    groups: dict[int, list[int]] = {}
    for (a, b), n in t["r"].items():
        groups.setdefault(a, []).extend([b] * n)
    return Counter({(a, len(bs), sum(bs)): 1 for a, bs in groups.items()})


def _sizes(t: Tables) -> Rows:
    numbers = Counter(n for _, n, _ in _counts(t))
    return Counter(dict.fromkeys(numbers.items(), 1))


def _joined(t: Tables) -> Rows:
    found: Rows = Counter()
    for (a, b), n in t["r"].items():
        for (other, c), m in t["s"].items():
            if b == other:
                found[a, c] += n * m
    return found


def _grouped(t: Tables) -> Rows:
    sums: dict[int, int] = {}
    for (a, c), n in _joined(t).items():
        sums[a] = sums.get(a, 0) + c * n
    return Counter(dict.fromkeys(sums.items(), 1))


def _reach(t: Tables) -> Rows:
    pairs = set(t["e"])
    while True:
        more = {(x, z) for x, y in pairs for other, z in pairs if y == other} - pairs
        if not more:
            return Counter(dict.fromkeys(pairs, 1))
        pairs |= more


def _top(t: Tables) -> Rows:
    return Counter(sorted(t["r"].elements(), key=lambda row: (-row[1], row[0]))[:4])


def _ends(t: Tables) -> Rows:
    return Counter(dict.fromkeys(Counter(x for x, _ in _reach(t)).items(), 1))


def _names(t: Tables) -> Rows:
    return Counter(dict.fromkeys(Counter(name for _, name in t["k"]).items(), 1))


def _triangles(t: Tables) -> Rows:
    r, s, e = t["r"], t["s"], t["e"]
    return Counter([(sum(n * m * e[c, a] for (a, b), n in r.items() for (d, c), m in s.items() if b == d),)])


JOIN = "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b"
VIEWS: dict[str, View] = {
    "counts": ("SELECT a, COUNT(*) AS n, SUM(b) AS t FROM r GROUP BY a", {}, _counts),
    "sizes": ("SELECT n, COUNT(*) AS m FROM counts GROUP BY n", {}, _sizes),
    "joined": (JOIN, {}, _joined),
    "skewed": (JOIN, {"strategy": "skew"}, _joined),
    "grouped": (
        "SELECT r.a, SUM(s.c) AS t FROM r JOIN s ON r.b = s.b GROUP BY r.a",
        {"strategy": "recompute"},
        _grouped,
    ),
    "top": ("SELECT a, b FROM r ORDER BY b DESC LIMIT 4", {}, _top),
    "reach": ("reach(X, Y) = closure(e)", {}, _reach),
    "ends": ("SELECT X, COUNT(*) AS n FROM reach GROUP BY X", {}, _ends),
    "names": ("SELECT name, COUNT(*) AS n FROM k GROUP BY name", {}, _names),
    "gradual": (
        "SELECT COUNT(*) AS n FROM r, s, e WHERE r.b = s.b AND s.c = e.x AND e.y = r.a",
        {"strategy": "skew", "rebalance": "deamortised"},
        _triangles,
    ),
}
FOLLOWED = ("sizes", "joined", "reach", "skewed", "top")


class OwnRing(Covariance):
    """A ring of a user, which is kept in plain Python beside the kernel."""


class Scene:
    """A database, what it should hold, and what those who follow its views have heard.

    With a `clock`, the moment that it shows is the row of a table, too.
    """

    definitions: ClassVar[dict[str, View]] = VIEWS
    followed: ClassVar[tuple[str, ...]] = FOLLOWED

    def __init__(self, kind: str, seed: int, clock: datetime | None = None) -> None:
        self.random = random.Random(seed)
        self.directory = Path(tempfile.mkdtemp(prefix="ivme-interrupts-")) if kind == "durable" else None
        self.kind = kind
        self.durability = "sync" if seed % 2 else "async"
        self.tables: Tables = {name: Counter() for name in (*TABLES, *KEYED)}
        self.views: list[str] = []
        self.sources = 0
        self.db = self._opened()
        for name, schema in TABLES.items():
            self.db.create_table(name, schema)
        self.db.create_table("k", KEYED["k"], primary_key="id")
        for name, (query, options, _) in self.definitions.items():
            self.db.create_view(name, query, **options)
            self.views.append(name)
        if clock is not None:
            self.tables["ivme_clock"] = Counter({(clock,): 1})
        self.ring: Any = None
        if kind != "durable" and clock is None:
            self.ring = self.db.create_ring_view("ring", "Q(B) = r(A, B)", OwnRing("A"))
        self._follow()

    def _opened(self) -> ivme.Database:
        if self.kind == "pure":
            return make_database("pure")
        return ivme.Database() if self.directory is None else ivme.Database(self.directory, durability=self.durability)

    def _follow(self) -> None:
        self.feeds = {name: self.db.view(name).changes() for name in self.followed}
        self.heard = {name: self.definitions[name][2](self.tables) for name in self.followed}

    def close(self) -> None:
        self.db.close()
        if self.directory is not None:
            shutil.rmtree(self.directory)

    def reopen(self) -> None:
        """Only what is in the directory is left."""
        self.db.close()
        self.db = self._opened()
        self._follow()

    # What is done

    def some_rows(self, table: str, most: int) -> list[tuple[Any, ...]]:
        pick = self.random.randrange
        rows: list[tuple[Any, ...]] = [(pick(5), pick(4)) for _ in range(1 + pick(most))]
        if table == "k":
            free = [i for i in range(12) if not any(i == key for key, _ in self.tables["k"])]
            return [(i, f"name {pick(3)}") for i in self.random.sample(free, min(len(free), 1 + pick(most)))]
        if table in ("r", "s"):  # a heavy value
            rows += [(pick(40), 1) if table == "r" else (1, pick(40)) for _ in range(pick(most))]
        return rows

    def present(self, table: str, most: int) -> list[tuple[Any, ...]]:
        there = list(self.tables[table].elements())
        return self.random.sample(there, min(len(there), 1 + self.random.randrange(most)))

    def change(self) -> tuple[str, Callable[[], object], Tables]:
        """Something to do: its name, how, and what the tables hold afterwards."""
        choose = self.random.choice
        table = choose([*TABLES, "k"])
        kind = choose(["one", "one", "few", "many", "out", "out", "batch", "refused", "position"])
        large = [name for name, rows in self.tables.items() if rows.total() > 40]
        table, kind = (large[0], "out") if large else (table, kind)
        most = {"one": 1, "few": 4, "many": 40, "out": 50 if large else 6}.get(kind, 4)
        db, after = self.db, {name: Counter(rows) for name, rows in self.tables.items()}
        if kind in ("one", "few", "many"):
            rows = self.some_rows(table, most)[: 1 if kind == "one" else None]
            after[table].update(rows)
            return f"{kind} in {table}", lambda: db.insert(table, rows), after
        if kind == "out":
            gone = self.present(table, most)
            after[table].subtract(gone)
            return f"{kind} of {table}", lambda: db.delete(table, gone), _positive(after)
        if kind == "refused":

            def refused() -> None:
                with suppress(ivme.IvmeError), db.batch() as batch:
                    batch.insert("r", [(1, 1), (2, 2)])
                    batch.delete("s", [(99, 99)])

            return kind, refused, after
        moves = kind == "position"
        first, second = self.random.sample([*TABLES], 2)
        into, gone = self.some_rows(first, 5), self.present(second, 5)
        after[first].update(into)
        after[second].subtract(gone)
        self.sources += moves
        source, position = (f"source {self.sources}", 1) if moves else (None, None)

        def batch() -> None:
            with db.batch(source, position) as changes:
                changes.insert(first, into)
                changes.delete(second, gone)

        return kind, batch, _positive(after)

    # What must hold

    def check(self, before: Tables, after: Tables, source: str | None = None) -> bool:
        """Whether the change was made; nothing in between."""
        self._check_lock()
        db = self.db
        held = {name: _held(*db.contents(name)) for name in self.tables}
        assert held in (before, after), f"the tables hold {held}; before {before}, after {after}"
        done = held == after and (before != after or source is None or db.position(source) is not None)
        if source is not None and before != after:
            assert (db.position(source) is not None) == done, "the position is not that of the rows"
        self.tables = now = after if done else before
        for name in self.views:
            expected = self.definitions[name][2](now)
            assert expected == Counter(db.view(name)), f"view {name}: {expected} is not {Counter(db.view(name))}"
        for name, feed in self.feeds.items():
            for change in feed:
                self.heard[name].update(change)
            heard = _positive({name: self.heard[name]})[name]
            assert self.definitions[name][2](now) == heard, f"follower of {name} heard {heard}"
        if self.ring is not None:
            expected = Counter(b for (_, b), n in now["r"].items() for _ in range(n))
            assert expected == Counter({row[0]: value.count for row, value in self.ring.items()}), "the ring view"
        if isinstance(db._runtime.backend, NativeBackend):
            db._runtime.backend.kernel.verify()
        return done

    def check_directory(self) -> None:
        """A copy of the directory, as a crash would leave it, opens with the same rows."""
        if self.directory is None:
            return
        copy = self.directory.with_suffix(".copy")
        shutil.copytree(self.directory, copy, ignore=shutil.ignore_patterns("lock"))
        try:
            with ivme.Database(copy) as db:
                assert self.tables == {name: _held(*db.contents(name)) for name in self.tables}, "the log"
                assert list(self.db.views) == list(db.views)
        finally:
            shutil.rmtree(copy)

    def _check_lock(self) -> None:
        """No thread holds the lock, and nothing is under way in the kernel."""
        free: list[bool] = []

        def take() -> None:
            if self.db._runtime.lock.acquire(timeout=2):
                self.db._runtime.lock.release()
                free.append(True)

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert free, "the lock is still taken"
        assert self.db._runtime.lock.pending is None


def _held(data: Any, weights: Any) -> Rows:
    rows = zip(*(column.to_pylist() for column in data.columns), strict=True)
    return Counter(dict(zip(rows, weights.tolist(), strict=True)))


def _positive(tables: Tables) -> Tables:
    return {name: Counter({row: n for row, n in rows.items() if n}) for name, rows in tables.items()}
