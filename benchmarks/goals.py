"""What `benchmarks.before` runs with both: prints one line of JSON, figures by name. Run as a file, not as a module."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import ivme

KEYS, ROWS, BATCH = 1000, 20_000, 1000
PAIRS = "SELECT R.a, R.b, S.c FROM R JOIN S ON R.b = S.b"
GROUPS = "SELECT b, COUNT(*) AS n, SUM(a) AS s, AVG(a) AS m FROM R GROUP BY b"
SUMS = "SELECT b, COUNT(*) AS n, SUM(c) AS s FROM v GROUP BY b"


def database(partners: int) -> ivme.Database:
    made = ivme.Database()
    made.create_table("R", {"a": "int", "b": "int"})
    made.create_table("S", {"b": "int", "c": "int"})
    made.insert("S", pa.table({"b": np.repeat(np.arange(KEYS), partners), "c": np.arange(KEYS * partners)}))
    made.insert("R", rows(np.random.default_rng(5), ROWS))
    return made


def rows(rng: np.random.Generator, n: int) -> pa.Table:
    return pa.table({"a": rng.integers(0, 10**6, n), "b": rng.integers(0, KEYS, n)})


def milliseconds(work: Callable[[], object], runs: int = 9) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3


def changing(made: ivme.Database, then: Callable[[], object] = lambda: None) -> Callable[[], None]:
    rng = np.random.default_rng(6)

    def change() -> None:
        batch = rows(rng, BATCH)
        made.insert("R", batch)
        made.delete("R", batch)
        then()

    return change


def following(query: str) -> tuple[float, float]:
    """Milliseconds for the same batches: not followed, and followed."""
    made = database(10)
    view = made.create_view("v", query)
    alone = milliseconds(changing(made))
    with view.changes() as feed:
        return alone, milliseconds(changing(made, lambda: [list(change.items()) for change in feed]))


def on_a_view() -> tuple[float, float]:
    made = database(1)
    made.create_view("v", PAIRS)
    made.create_view("w", SUMS)
    on = milliseconds(changing(made))
    return on, float(sum(row[1] for row in made.view("w")))


def reading() -> tuple[float, int]:
    """Milliseconds for reading a view with heavy and light parts into Arrow, and its rows."""
    made = ivme.Database()
    made.create_table("R", {"a": "int", "b": "int"})
    made.create_table("S", {"b": "int", "c": "int"})
    view = made.create_view("v", "SELECT DISTINCT R.a, S.c FROM R JOIN S ON R.b = S.b", strategy="skew")
    rng = np.random.default_rng(7)
    hubs = np.where(rng.random(3000) < 0.5, rng.integers(0, 5, 3000), rng.integers(0, 800, 3000))
    made.insert("R", pa.table({"a": rng.integers(0, 150, 3000), "b": hubs}))
    made.insert("S", pa.table({"b": hubs[::-1].copy(), "c": rng.integers(0, 150, 3000)}))
    return milliseconds(view.to_arrow), view.to_arrow().num_rows


def unread(width: int) -> float:
    """Nanoseconds a row for a view over one column of so many."""
    rng = np.random.default_rng(8)
    names = [f"c{i}" for i in range(width)]
    batches = [pa.table({name: rng.integers(0, 1000, 50_000) for name in names}) for _ in range(6)]
    made = ivme.Database()
    made.create_table("T", dict.fromkeys(names, "int"))
    made.create_view("v", "SELECT c0, COUNT(*) AS n FROM T GROUP BY c0")
    start = time.process_time()
    for batch in batches:
        made.insert("T", batch)
    return (time.process_time() - start) / 300_000 * 1e9


def single_rows() -> float:
    """Microseconds for a row of Python's."""
    made = database(1)
    made.create_view("v", GROUPS)

    def insert() -> None:
        for number in range(2000):
            made.insert("R", [(number, number % KEYS)])

    return milliseconds(insert, 3) / 2


def opening() -> float:
    """Milliseconds of CPU for an interpreter that makes an empty database, less those of an empty interpreter."""

    def taken(text: str) -> float:
        code = f"import time; {text}; print(time.process_time())"
        return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)

    return (taken("import ivme; ivme.Database()") - taken("pass")) * 1e3


def main() -> None:
    figures: dict[str, float] = {}
    for name, query in (("a join", PAIRS), ("groups", GROUPS)):
        alone, followed = following(query)
        figures[f"{name}: insert and delete 1,000 rows, ms"] = alone
        figures[f"{name}: the same, followed, ms"] = followed
    figures["a view on a view, ms"], figures["answer of the view on a view"] = on_a_view()
    figures["heavy and light parts into Arrow, ms"], figures["answer of the parts"] = reading()
    figures["a view over 1 column of 1, ns a row"] = unread(1)
    figures["a view over 1 column of 16, ns a row"] = unread(16)
    figures["a single row, us"] = single_rows()
    figures["import ivme; ivme.Database(), ms"] = opening()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
