"""Eight threads that read beside a writer, and the same threads over a plain dict.

    python -m benchmarks.readers [--rows 100000] [--seconds 5] [--rate 1000]

Four threads ask for single keys, two read a join of all rows into Arrow, two iterate over it, and a writer commits
`rate` batches a second, each of which moves an amount from one key to another, so that every state has the same total:
all scans are checked for it. Printed are the times that each kind of call takes, as seen by the caller, which has to
wait for Python's own lock (5 ms for each busy thread), and the waits for the locks of ivme, as the kernel counts them:
at most 5 ms for 99 of 100. The dict has the same work: a look-up, a copy of all items, a loop over such a copy, and
two changes of an item a batch, under a lock.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from ivme.database import Database

AMOUNT = 1000
Times = dict[str, list[float]]


class Store(Protocol):
    """What is read and written."""

    def look_up(self, key: int) -> int: ...
    def scan(self) -> int: ...
    def iterate(self) -> int: ...
    def move(self, source: int, target: int, amount: int) -> None: ...


class PlainDict:
    """A dict with a lock around it."""

    def __init__(self, rows: int) -> None:
        self._items = dict.fromkeys(range(rows), AMOUNT)
        self._lock = threading.Lock()

    def look_up(self, key: int) -> int:
        with self._lock:
            return self._items[key]

    def scan(self) -> int:
        with self._lock:
            items = list(self._items.items())
        return int(np.array(items, dtype=np.int64)[:, 1].sum())

    def iterate(self) -> int:
        with self._lock:
            items = list(self._items.items())
        return sum(amount for _, amount in items)

    def move(self, source: int, target: int, amount: int) -> None:
        with self._lock:
            self._items[source] -= amount
            self._items[target] += amount


class Joined:
    """A join of amounts with names, and a view that finds the amount of a key."""

    def __init__(self, rows: int) -> None:
        self.database = Database()
        self.database.create_table("amounts", {"k": "int", "amount": "int"}, primary_key="k")
        self.database.create_table("names", {"k": "int", "name": "string"}, primary_key="k")
        keys = np.arange(rows)
        self.database.insert("amounts", pa.table({"k": keys, "amount": np.full(rows, AMOUNT)}))
        self.database.insert("names", pa.table({"k": keys, "name": [f"name {key % 1000}" for key in range(rows)]}))
        query = "SELECT a.k, n.name, a.amount FROM amounts a JOIN names n ON a.k = n.k"
        self._all = self.database.create_view("every", query)
        self._one = self.database.create_view("one", "SELECT amount FROM amounts WHERE k = :k")
        self._amounts = dict.fromkeys(range(rows), AMOUNT)

    def look_up(self, key: int) -> int:
        ((amount,),) = self._one(k=key)
        return int(amount)

    def scan(self) -> int:
        return int(self._all.to_arrow()["amount"].to_numpy().sum())

    def iterate(self) -> int:
        return sum(row[2] for row in self._all)

    def move(self, source: int, target: int, amount: int) -> None:
        before = [(key, self._amounts[key]) for key in (source, target)]
        self._amounts[source] -= amount
        self._amounts[target] += amount
        with self.database.batch() as batch:
            batch.delete("amounts", before)
            batch.insert("amounts", [(key, self._amounts[key]) for key, _ in before])

    def waits(self) -> list[int]:
        runtime = self.database.definitions.runtime
        backend = runtime.backend
        of_kernel = backend.kernel.waits() if hasattr(backend, "kernel") else []
        return [a + b for a, b in zip(runtime.lock.waits(), of_kernel, strict=True)]


def run(store: Store, rows: int, seconds: float, rate: int) -> Times:
    """The times of all calls, by kind."""
    times: Times = {kind: [] for kind in ("look-up", "scan", "iteration", "batch")}
    over = threading.Event()
    wrong: list[object] = []
    counts = {"look-up": 4, "scan": 2, "iteration": 2}

    def reader(kind: str, number: int) -> None:
        draw = random.Random(number)
        calls: dict[str, Callable[[], int]] = {
            "look-up": lambda: store.look_up(draw.randrange(rows)),
            "scan": store.scan,
            "iteration": store.iterate,
        }
        while not over.is_set():
            start = time.perf_counter()
            try:
                found = calls[kind]()
            except Exception as error:
                wrong.append(error)
                return
            times[kind].append(time.perf_counter() - start)
            if kind != "look-up" and found != rows * AMOUNT:
                wrong.append((kind, found))

    threads = [threading.Thread(target=reader, args=(kind, n)) for kind, count in counts.items() for n in range(count)]
    for thread in threads:
        thread.start()
    _write(store, rows, seconds, rate, times["batch"])
    over.set()
    for thread in threads:
        thread.join()
    if wrong:
        raise SystemExit(f"wrong: {wrong[:3]}")
    return times


def _write(store: Store, rows: int, seconds: float, rate: int, times: list[float]) -> None:
    draw = random.Random(99)
    begin = time.perf_counter()
    for number in range(int(seconds * rate)):
        due = begin + number / rate
        now = time.perf_counter()
        if now > begin + seconds:
            return
        if due > now:
            time.sleep(due - now)
        source, target = draw.sample(range(rows), 2)
        start = time.perf_counter()
        store.move(source, target, 1)
        times.append(time.perf_counter() - start)


def percentile_of_waits(waits: Sequence[int], part: float) -> float:
    """The upper end of the class of waits in which that part of all is reached, in milliseconds."""
    left = part * sum(waits)
    for place, count in enumerate(waits):
        left -= count
        if left <= 0:
            return 0.0 if place == 0 else 2.0 ** (place - 1) / 1000
    return float("inf")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=1000)
    given = parser.parse_args(arguments)
    joined = Joined(given.rows)
    for name, store in (("ivme", joined), ("dict", PlainDict(given.rows))):
        times = run(store, given.rows, given.seconds, given.rate)
        for kind, found in times.items():
            if not found:
                raise SystemExit(f"{name}: no {kind} came to its end")
            for part in (50, 99):
                show(f"{name}: {kind}, {part}th percentile", float(np.percentile(found, part)) * 1000, "ms")
        show(f"{name}: batches a second", len(times["batch"]) / given.seconds, "")
    if hasattr(joined.database.definitions.runtime.lock, "waits"):
        waits = joined.waits()
        for share in (0.5, 0.99, 0.999):
            target = "at most 5 ms" if share == 0.99 else ""
            show(f"waits for locks, {share * 100:g}th percentile", percentile_of_waits(waits, share), "ms", target)
        show("waits for locks, longest", percentile_of_waits(waits, 1), "ms")


if __name__ == "__main__":
    main()
