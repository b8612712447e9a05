"""What it costs to follow a view, and to build a view on a view.

    python -m benchmarks.following [--rows 20000] [--batch 1000] [--runs 15] [--cpu]

Batches of inserts and deletes go into a table that is joined with another. Following is what a batch takes more if the
view's changes are taken, as Arrow or as Python's rows, for each row of the view that changes: at most 0.3 µs as Arrow.
A view on a view is compared with the same query written as one view, alone and beside the view below, which the view
on a view keeps as well: at most 2 times. A join with one partner a row hands on as many rows as come in; one with ten
hands on ten times as many, which the query in one view never makes, as it sums before it joins. Answers are compared
before anything is measured.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
import pyarrow as pa

from benchmarks.measure import median, parse, seconds, show
from ivme.changes import Changes
from ivme.database import Database

KEYS = 1000
Views = dict[str, str]

PAIRS = "SELECT R.a, R.b, S.c FROM R JOIN S ON R.b = S.b"
FOLLOWED = {
    "join, ten partners a row": (10, PAIRS),
    "join with strings, ten partners a row": (10, "SELECT R.a, R.t, S.c FROM R JOIN S ON R.b = S.b"),
    "groups: COUNT, SUM, AVG": (1, "SELECT b, COUNT(*) AS n, SUM(a) AS s, AVG(a) AS m FROM R GROUP BY b"),
    "groups: decimals, MIN of strings": (1, "SELECT b, SUM(d) AS s, AVG(d) AS m, MIN(t) AS t FROM R GROUP BY b"),
}

SUMS = "SELECT b, COUNT(*) AS n, SUM(c) AS s FROM v GROUP BY b"
WHOLE = "SELECT R.b AS b, COUNT(*) AS n, SUM(S.c) AS s FROM R JOIN S ON R.b = S.b GROUP BY R.b"
LAYERS: dict[str, tuple[int, Views, str]] = {
    "sums over a filter": (
        1,
        {"v": "SELECT a, b FROM R WHERE a % 2 = 0", "w": "SELECT b, COUNT(*) AS n, SUM(a) AS s FROM v GROUP BY b"},
        "SELECT b, COUNT(*) AS n, SUM(a) AS s FROM R WHERE a % 2 = 0 GROUP BY b",
    ),
    "sums over a join, one partner a row": (1, {"v": PAIRS, "w": SUMS}, WHOLE),
    "sums over a join, ten partners a row": (10, {"v": PAIRS, "w": SUMS}, WHOLE),
    "sums over groups": (
        1,
        {
            "v": "SELECT b, b % 10 AS g, COUNT(*) AS n, SUM(a) AS s FROM R GROUP BY b, b % 10",
            "w": "SELECT g, SUM(n) AS n, SUM(s) AS s FROM v GROUP BY g",
        },
        "SELECT b % 10 AS g, COUNT(*) AS n, SUM(a) AS s FROM R GROUP BY b % 10",
    ),
}


@dataclass(slots=True)
class Instance:
    """A database with R and S, and batches for R."""

    database: Database
    size: int
    rng: np.random.Generator

    def batch(self) -> pa.Table:
        return made(self.rng, self.size)

    def change(self, taken: Callable[[], object] = lambda: None) -> float:
        """Seconds for the inserts and deletes of a batch, and for what is done then."""
        batch = made(self.rng, self.size)

        def work() -> None:
            self.database.insert("R", batch)
            self.database.delete("R", batch)
            taken()

        return seconds(work)


def made(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows of R."""
    a, b = rng.integers(0, 10**6, rows), rng.integers(0, KEYS, rows)
    units = pa.array(a).cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 2)).cast(pa.decimal128(12, 2))
    return pa.table({"a": a, "b": b, "t": [f"name {number % 5000}" for number in a.tolist()], "d": units})


def instance(rows: int, size: int, partners: int) -> Instance:
    rng = np.random.default_rng(5)
    database = Database()
    database.create_table("R", {"a": "int", "b": "int", "t": "string", "d": "decimal(12, 2)"})
    database.create_table("S", {"b": "int", "c": "int"})
    database.insert("S", pa.table({"b": np.repeat(np.arange(KEYS), partners), "c": np.arange(KEYS * partners)}))
    database.insert("R", made(rng, rows))
    return Instance(database, size, rng)


def check_changes(made_: Instance, query: str) -> None:
    """Raises unless a view's rows are what its changes add up to."""
    view = made_.database.create_view("checked", query)
    total = Counter(dict(view.items()))
    with view.changes() as feed:
        made_.database.insert("R", made_.batch())
        for change in feed:
            for row, weight in change.items():
                total[row] += weight
    if dict(view.items()) != {row: weight for row, weight in total.items() if weight}:
        raise AssertionError(f"the changes of {query} do not add up to its rows")
    made_.database.drop_view("checked")


def as_arrow(feed: Changes) -> int:
    return sum(change.to_arrow().num_rows for change in feed)


def as_rows(feed: Changes) -> int:
    return sum(len(list(change.items())) for change in feed)


def measure_following(options: argparse.Namespace, name: str, partners: int, query: str) -> None:
    world = instance(options.rows, options.batch, partners)
    check_changes(world, query)
    view = world.database.create_view("v", query)
    world.change()
    plain = median(world.change, options.runs)
    with view.changes() as feed:
        world.change()
        changed = as_arrow(feed)
        forms = partial(as_arrow, feed), partial(as_rows, feed)
        costs = [median(partial(world.change, form), options.runs) for form in forms]
    show(f"{name}: changed rows", changed, "rows")
    show("  not followed", plain * 1e3, "ms")
    for form, cost, target in zip(("Arrow", "Python's rows"), costs, ("0.3", ""), strict=True):
        show(f"  followed, taken as {form}", cost * 1e3, "ms")
        show("    on top, a changed row", (cost - plain) / changed * 1e6, "µs", target)


def measure_layers(options: argparse.Namespace, name: str, partners: int, views: Views, whole: str) -> None:
    below = {view: query for view, query in views.items() if view != "w"}
    kinds = {"alone": {"w": whole}, "beside": {**below, "w": whole}, "on": views}
    worlds = {kind: instance(options.rows, options.batch, partners) for kind in kinds}
    for kind, world in worlds.items():
        for view, query in kinds[kind].items():
            world.database.create_view(view, query)
        world.database.insert("R", world.batch())
    answers = [dict(world.database.view("w").items()) for world in worlds.values()]
    if any(answer != answers[0] for answer in answers):
        raise AssertionError(f"{name}: the view on a view is not the query in one view")
    times = {kind: median(world.change, options.runs) for kind, world in worlds.items()}
    show(f"{name}: as one view", times["alone"] * 1e3, "ms")
    show("  as one view, beside the view below", times["beside"] * 1e3, "ms")
    show("  as a view on a view", times["on"] * 1e3, "ms")
    show("  times the one view", times["on"] / times["alone"], "times", "2")
    show("  times the one view, beside the view below", times["on"] / times["beside"], "times")


def measure_single(options: argparse.Namespace) -> None:
    """One row at a time, with and without a follower."""
    for name, (partners, query) in FOLLOWED.items():
        world = instance(options.rows, options.batch, partners)
        view = world.database.create_view("v", query)
        row = next(zip(*(column.to_pylist() for column in world.batch().columns), strict=True))
        numbers = count()

        def once(world: Instance = world, row: tuple[object, ...] = row) -> None:
            for _ in range(100):
                world.database.insert("R", [(next(numbers), *row[1:])])  # noqa: B023  used at once

        plain = median(lambda: seconds(once), options.runs)
        with view.changes() as feed:
            cost = median(lambda: seconds(once), options.runs)
            as_rows(feed)
        show(f"{name}: one row", plain * 1e4, "µs")
        show("  followed", cost * 1e4, "µs")


def main() -> None:
    parser = argparse.ArgumentParser(description="What following a view costs, and a view on a view.")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=1000)
    options = parse(parser)
    for name, (partners, query) in FOLLOWED.items():
        measure_following(options, name, partners, query)
    for name, (partners, views, whole) in LAYERS.items():
        measure_layers(options, name, partners, views, whole)
    measure_single(options)


if __name__ == "__main__":
    main()
