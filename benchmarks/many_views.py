"""Creating and opening many views over the same tables: the time against how many there are.

    python -m benchmarks.many_views [--views 1,10,100,300] [--runs 3] [--cpu]

Views with filters of their own over two tables: created one by one in memory, created as one view of so many blocks
(GROUPING SETS), and opened from a directory whose snapshot has their maps. The first row that is inserted after that
assembles the triggers that views share. All of them are verified.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import combinations, islice
from pathlib import Path

from benchmarks.measure import now, parse, seconds, show
from ivme.database import Database

VIEWS = (
    "SELECT a, COUNT(*) AS n FROM R WHERE c > {} GROUP BY a",
    "SELECT R.a, S.d, COUNT(*) AS n FROM R JOIN S ON R.b = S.b WHERE R.c > {} GROUP BY R.a, S.d",
    "SELECT b, SUM(c) AS s FROM R WHERE a <> {} GROUP BY b",
)
WIDE = "abcdefghi"


def made(path: Path | None) -> Database:
    """The tables, with few rows: the time is that of the views."""
    database = Database() if path is None else Database(path, durability="async")
    database.create_table("R", {"a": "int", "b": "int", "c": "int"})
    database.create_table("S", {"b": "int", "d": "int"})
    database.insert("R", [(i % 100, i % 50, i) for i in range(1000)])
    database.insert("S", [(i % 50, i % 7) for i in range(500)])
    return database


def create(database: Database, views: int) -> None:
    for number in range(views):
        database.create_view(f"v{number}", VIEWS[number % len(VIEWS)].format(number))


def verify(database: Database) -> None:
    for name in database.views:
        database.view(name).verify()


def grouping_sets(sets: int) -> str:
    """A view of so many blocks, each with other keys: first all of them."""
    every = (keys for width in range(len(WIDE), 0, -1) for keys in combinations(WIDE, width))
    chosen = [f"({', '.join(keys)})" for keys in islice(every, sets)]
    return f"SELECT {', '.join(WIDE)}, SUM(x) AS s FROM W GROUP BY GROUPING SETS ({', '.join(chosen)})"


def show_created(views: int) -> None:
    database = made(None)
    taken = seconds(lambda: create(database, views))
    show(f"{views} views, one by one", taken, "s")
    show("  the first row after that", seconds(lambda: database.insert("R", [(1, 2, 3)])) * 1000, "ms")
    verify(database)
    database.close()


def show_blocks(views: int) -> None:
    database = Database()
    database.create_table("W", dict.fromkeys((*WIDE, "x"), "int"))
    database.insert("W", [tuple((row * 7 + place) % (place + 2) for place in range(10)) for row in range(200)])
    show(f"{views} blocks of one view", seconds(lambda: database.create_view("v", grouping_sets(views))), "s")
    verify(database)
    database.close()


def show_opened(views: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        with made(path) as database:
            create(database, views)
            database.checkpoint()
        start = now()
        database = Database(path, durability="async")
        show(f"{views} views, opened from a snapshot", now() - start, "s", "at most 2 for 100")
        verify(database)
        database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", default="1,10,100,300")
    options = parse(parser)
    warm = made(None)
    create(warm, len(VIEWS))
    warm.close()
    for views in map(int, options.views.split(",")):
        for measured in (show_created, show_blocks, show_opened):
            measured(views)


if __name__ == "__main__":
    main()
